import{db as o}from"./chunk-B6UEV5QY.js";import"./chunk-2QUVAOQ6.js";await o();
