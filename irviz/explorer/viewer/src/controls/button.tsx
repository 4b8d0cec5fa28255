// Buttons of the viewer.

import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icons";

interface Props {
  /** What it does: the tooltip, and the name where there is only an icon. */
  title: string;
  icon?: IconName;
  children?: ComponentChildren;
  class?: string;
  isPressed?: boolean;
  isDisabled?: boolean;
  hasMenu?: boolean;
  onPress(event: MouseEvent): void;
}

export function Button(props: Props) {
  const { title, icon, children, isPressed, isDisabled, hasMenu, onPress } = props;
  const kind = children === undefined ? "irviz-button irviz-icon-button" : "irviz-button";
  return (
    <button
      type="button"
      class={`${kind} ${props.class ?? ""}`}
      title={title}
      aria-label={children === undefined ? title.replace(/ \([^)]*\)$/, "") : undefined}
      aria-pressed={isPressed}
      aria-haspopup={hasMenu ? "menu" : undefined}
      disabled={isDisabled}
      onClick={onPress}
    >
      {icon && <Icon name={icon} />}
      {children}
      {hasMenu && children !== undefined && <Icon name="down" />}
    </button>
  );
}
