// The few icons of the pages, on a grid of 24, drawn with lines. After Lucide (ISC).
const PATHS = {
  activity: 'M3 12h4l3-8 4 16 3-8h4',
  alert: 'M12 3 2.5 20h19zM12 10v4M12 17.2v.1',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  box: 'M12 3 4 7.2v9.6L12 21l8-4.2V7.2zM4 7.2l8 4.3 8-4.3M12 11.5V21',
  check: 'M4 12.5 9.5 18 20 6.5',
  'check-circle': 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8 12.3l2.8 2.7L16 9.5',
  chevron: 'M6 9l6 6 6-6',
  'chevron-right': 'M9 6l6 6-6 6',
  circle: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16z',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  cross: 'M6 6l12 12M18 6 6 18',
  'cross-circle': 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9 9l6 6M15 9l-6 6',
  dashboard: 'M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z',
  down: 'M12 5v14M6 13l6 6 6-6',
  edit: 'M4 20h4L19.5 8.5l-4-4L4 16zM13.5 6.5l4 4',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  folder: 'M3 6a1 1 0 0 1 1-1h5l2.5 3H20a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1z',
  help: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.7 2.2c-.8.5-1.2 1-1.2 1.8M12 16.8v.1',
  info: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5.5M12 7.5v.1',
  keyboard: 'M3 6h18v12H3zM7 10h.1M11 10h.1M15 10h.1M18 10h.1M8 14h8',
  list: 'M8 6h12M8 12h12M8 18h12M4 6h.1M4 12h.1M4 18h.1',
  lock: 'M5 11h14v9H5zM8 11V8a4 4 0 0 1 8 0v3',
  menu: 'M4 7h16M4 12h16M4 17h16',
  module: 'M9 3h6v3.5a2 2 0 0 0 2 2H21v6h-4a2 2 0 0 0-2 2V21H9v-4.5a2 2 0 0 0-2-2H3v-6h4a2 2 0 0 0 2-2z',
  out: 'M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9',
  pause: 'M9 6v12M15 6v12',
  play: 'M7 5l11 7-11 7z',
  plus: 'M12 5v14M5 12h14',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 5v6h-6',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16.2 16.2 21 21',
  spinner: 'M12 3a9 9 0 1 1-9 9',
  swap: 'M4 8h14M14 4l4 4-4 4M20 16H6M10 12l-4 4 4 4',
  trash: 'M4 6h16M9 6V4h6v2M6 6l1 14h10l1-14M10 10v6M14 10v6',
  tree: 'M5 4v14h6M5 10h6M14 7.5h6v5h-6zM14 15.5h6v5h-6z',
  up: 'M12 19V5M6 11l6-6 6 6',
  upload: 'M12 16V4M7 9l5-5 5 5M4 16v4h16v-4',
} as const;

export type IconName = keyof typeof PATHS;

/** Draws an icon. It is for the eye alone: the word beside it, or the label of its button, says the same. */
export function Icon({ name, class: extra }: { name: IconName; class?: string | undefined }) {
  return (
    <svg class={extra ? `icon ${extra}` : 'icon'} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
