import{_a as o}from"./chunk-6CFQF7UL.js";import"./chunk-3MTZ6D7V.js";await o();
