import{cb as o}from"./chunk-O7YOA7AH.js";import"./chunk-KO2TA5CE.js";await o();
