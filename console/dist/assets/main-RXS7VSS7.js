import{db as o}from"./chunk-BZFPBHVR.js";import"./chunk-VPU7RCYM.js";await o();
