import{cb as o}from"./chunk-LSKB2GLN.js";import"./chunk-7PZ4H5XM.js";await o();
