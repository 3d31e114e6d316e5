import{_a as o}from"./chunk-OQXVQ7VL.js";import"./chunk-NMJXUCJR.js";await o();
