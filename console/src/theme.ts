// Runs in the head, before anything is drawn, so that a page that is to be dark never flashes.
try {
  const theme = localStorage.getItem('pintle-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is forbidden: as the system has it.
}
