import{_a as o}from"./chunk-CE3UQA5W.js";import"./chunk-YRXPBLBJ.js";await o();
