import{db as o}from"./chunk-MBU536FE.js";import"./chunk-GUEUWRPJ.js";await o();
