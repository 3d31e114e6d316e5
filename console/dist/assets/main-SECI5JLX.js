import{ab as o}from"./chunk-I74WAOJL.js";import"./chunk-YRXPBLBJ.js";await o();
