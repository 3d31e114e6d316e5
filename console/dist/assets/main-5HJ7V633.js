import{db as o}from"./chunk-IQYUKVZ3.js";import"./chunk-GUEUWRPJ.js";await o();
