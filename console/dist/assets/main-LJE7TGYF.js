import{cb as o}from"./chunk-UZ6INDNC.js";import"./chunk-KO2TA5CE.js";await o();
