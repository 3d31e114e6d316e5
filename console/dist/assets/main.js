import{cb as o}from"./console.js";import"./world.js";await o();
