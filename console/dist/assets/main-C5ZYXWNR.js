import{db as o}from"./chunk-77H6LBDD.js";import"./chunk-GUEUWRPJ.js";await o();
