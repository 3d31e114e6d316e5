/** The mark of the console: a pintle, the pin on which a rudder turns. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <rect x="1" y="1" width="22" height="22" rx="6" />
      <path d="M12 5v14M7.5 9h9M9 14.5h6" />
    </svg>
  );
}
