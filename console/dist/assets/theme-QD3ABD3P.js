try{let t=localStorage.getItem("pintle-theme");(t==="light"||t==="dark")&&(document.documentElement.dataset.theme=t)}catch{}
