import{db as o}from"./chunk-DIAFYY6U.js";import"./chunk-GUEUWRPJ.js";await o();
