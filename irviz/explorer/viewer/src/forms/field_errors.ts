// Words below a field of a form say what is wrong with it: the field is marked and gets the focus.

const WRONG = "irviz-wrong";
const FIELDS = "input, select, textarea, .irviz-chip";
let count = 0;

/** Follow the wrong fields of a form until the returned function is called. */
export function followFieldErrors(form: HTMLElement): () => void {
  const mark = (field: Element) => {
    const control = field.querySelector<HTMLElement>(FIELDS);
    const words = field.querySelector(".irviz-error");
    if (!control) return;
    if (!words || !field.classList.contains(WRONG)) {
      control.removeAttribute("aria-invalid");
      control.removeAttribute("aria-describedby");
      return;
    }
    words.id ||= `irviz-field-error-${++count}`;
    const isNew = control.getAttribute("aria-describedby") !== words.id;
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", words.id);
    // who writes in another field by now is not disturbed
    const { activeElement } = form.ownerDocument;
    if (isNew && !(form.contains(activeElement) && activeElement?.matches(FIELDS))) control.focus();
  };
  const observer = new MutationObserver((records) => {
    const fields = records.map(({ target }) =>
      (target as Element).closest?.(".irviz-checked-field"),
    );
    for (const field of new Set(fields)) if (field) mark(field);
  });
  observer.observe(form, { subtree: true, childList: true, attributeFilter: ["class"] });
  return () => observer.disconnect();
}
