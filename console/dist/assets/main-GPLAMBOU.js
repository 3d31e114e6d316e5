import{ab as o}from"./chunk-2WFSPN2J.js";import"./chunk-KO2TA5CE.js";await o();
