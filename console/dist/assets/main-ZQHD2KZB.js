import{cb as o}from"./chunk-O5FPXZUL.js";import"./chunk-WEORXVUV.js";await o();
