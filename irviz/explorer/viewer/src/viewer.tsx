// The viewer: all of the explorer that is looked at, in one widget.

import { effect, useSignalEffect } from "@preact/signals";
import { render as renderInto } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { copy } from "./controls/clipboard";
import { download } from "./controls/downloads";
import { dropFiles, hasFiles } from "./controls/drop_files";
import { MenuLayer } from "./controls/menu";
import { Splitter } from "./controls/splitter";
import { GraphPane } from "./graph/graph_pane";
import { useFirstSteps } from "./inspector/first_steps";
import { NodePane } from "./inspector/inspector";
import { LoopsPane } from "./loops/loops_pane";
import { fileHost } from "./offline/offline_host";
import { showPage } from "./offline/offline_page";
import { Banner, Finding } from "./page/banners";
import { Help } from "./page/help";
import { pressKey } from "./page/keys";
import { makeSizes, type Sizes } from "./page/pane_sizes";
import { RunAnswer } from "./page/run_button";
import { hideStaticPicture } from "./page/static_picture";
import { Status } from "./page/status_bar";
import { followTheme, isDarkPage } from "./page/theme_choice";
import { Toolbar } from "./page/toolbar";
import type { Download, Recording } from "./schema";
import { ScriptPane } from "./script/script_pane";
import { PassTimes } from "./stages/pass_times";
import { StageList } from "./stages/stage_list";
import { createState, hasText, type State } from "./state";
import { type AnyModel, type Host, liveHost } from "./viewer_host";

const IN_CELL = { rail: 188, inspector: 300 }; // px: a notebook has less room than a page

/** The graph or loops, the text, or both. */
function Centre({ state, sizes }: { state: State; sizes: Sizes }) {
  const layout = state.layout.value;
  const hasGraph = state.shows("graph") && (layout !== "text" || !state.shows("script"));
  const hasScript = state.shows("script") && (hasText(layout) || !state.shows("graph"));
  const loops = layout === "graph" ? null : state.scene.value.loops;
  return (
    <div class="irviz-centre" data-both={hasGraph && hasScript ? "" : undefined}>
      <Finding state={state} />
      <RunAnswer state={state} />
      {hasGraph && loops && <LoopsPane state={state} loops={loops} />}
      {hasGraph && !loops && <GraphPane state={state} />}
      {hasGraph && hasScript && (
        <Splitter
          sizes={sizes}
          name="script"
          label="Height of the text"
          isVertical={false}
          sign={-1}
        />
      )}
      {hasScript && <ScriptPane state={state} />}
    </div>
  );
}

function Viewer({ state, sizes }: { state: State; sizes: Sizes }) {
  const root = useRef<HTMLDivElement>(null);
  const fills = state.height.value === 0;
  const hasInspector = state.shows("node") && state.isInspectorOpen.value;
  useFirstSteps(state);
  useViewer(state, root);

  const kinds = ["irviz-viewer", fills ? "irviz-fills" : "irviz-cell"];
  if (state.isLarge.value) kinds.push("irviz-large");
  if (state.isComparing.value) kinds.push("irviz-comparing");
  if (state.isFull.value) kinds.push("irviz-full");
  const measures = {
    "--irviz-height": `${sizes.height.value}px`,
    "--irviz-rail": `${sizes.rail.value}px`,
    "--irviz-inspector": `${sizes.inspector.value}px`,
    "--irviz-script": `${sizes.script.value}px`,
  };
  return (
    <section
      ref={root}
      tabIndex={-1} // a click anywhere lets its keys be the viewer's
      aria-label={`irviz: ${state.title.value}`}
      class={kinds.join(" ")}
      style={measures}
      data-theme={isDarkPage.value ? "dark" : "light"}
    >
      <div class="irviz-frame">
        {state.shows("toolbar") && <Toolbar state={state} />}
        <Banner state={state} />
        <div class="irviz-body">
          {state.shows("stages") && (
            <>
              <StageList state={state} />
              <Splitter sizes={sizes} name="rail" label="Width of the stages" isVertical sign={1} />
            </>
          )}
          {(state.shows("graph") || state.shows("script")) && (
            <Centre state={state} sizes={sizes} />
          )}
          {hasInspector && (
            <>
              <Splitter
                sizes={sizes}
                name="inspector"
                label="Width of the inspector"
                isVertical
                sign={-1}
              />
              <NodePane state={state} />
            </>
          )}
        </div>
        {state.shows("status") && <Status state={state} />}
      </div>
      {!fills && (
        <Splitter sizes={sizes} name="height" label="Height" isVertical={false} sign={1} />
      )}
      <div class="irviz-drop" aria-hidden="true">
        Drop a file to open it as another first stage
      </div>
      <Help state={state} />
      <PassTimes state={state} />
      <MenuLayer state={state} />
    </section>
  );
}

/** What the page does beside drawing: size, theme, keys, files, full screen and the clipboard. */
function useViewer(state: State, ref: { readonly current: HTMLDivElement | null }) {
  useEffect(() => {
    const root = ref.current;
    if (!root) return;
    const ended = new AbortController();
    const { signal } = ended;
    const observer = new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.contentRect ?? {};
      if (width) state.size.value = { width, height };
    });
    observer.observe(root);
    // on what has the focus: on an ancestor it is too late to keep keys from JupyterLab
    const suppress = ({ target }: FocusEvent) => {
      if (target instanceof HTMLElement) target.dataset.lmSuppressShortcuts = "true";
    };
    root.addEventListener("focusin", suppress, { signal });
    // a page that it fills has nothing else that keys are for, wherever the focus is
    const keys: HTMLElement = state.height.peek() ? root : root.ownerDocument.body;
    keys.addEventListener("keydown", (event) => pressKey(state, root, event), { signal });
    root.addEventListener(
      "dragover",
      (event) => {
        if (!hasFiles(event) || !state.can("OpenFile")) return;
        event.preventDefault();
        root.classList.add("irviz-dropping");
      },
      { signal },
    );
    root.addEventListener(
      "dragleave",
      ({ relatedTarget }) => {
        if (!root.contains(relatedTarget as Node | null)) root.classList.remove("irviz-dropping");
      },
      { signal },
    );
    root.addEventListener(
      "drop",
      (event) => {
        root.classList.remove("irviz-dropping");
        void dropFiles(state, event);
      },
      { signal },
    );
    root.ownerDocument.addEventListener(
      "fullscreenchange",
      () => {
        const { fullscreenElement } = root.getRootNode() as Document | ShadowRoot;
        if (!fullscreenElement) state.isFull.value = false;
      },
      { signal },
    );
    const stops = [
      effect(() => {
        const isFull = state.isFull.value;
        const { fullscreenElement } = root.getRootNode() as Document | ShadowRoot;
        // where the host does not let it, the style sheet alone makes it fill the window
        if (isFull && !fullscreenElement) root.requestFullscreen?.().catch(() => {});
        else if (!isFull && fullscreenElement === root) void root.ownerDocument.exitFullscreen();
      }),
      effect(() => {
        const hasScript = hasText(state.layout.value);
        if (hasScript !== state.hasScript.peek()) state.set("hasScript", hasScript);
      }),
      effect(() => {
        state.isInspectorOpen.value = !state.isDrawer.value; // a drawer is opened when it is needed
      }),
      openAtSelection(state),
      followTheme(state),
    ];
    let serial = state.clipboard.peek().serial;
    stops.push(
      effect(() => {
        const { text, serial: next } = state.clipboard.value;
        if (next !== serial) void copy(text, root);
        serial = next;
      }),
    );
    return () => {
      ended.abort();
      observer.disconnect();
      for (const stop of stops) stop();
    };
  }, []);
}

const DOUBLE_CLICK = 300; // milliseconds, in which what was clicked on stays where it is

/** Open the drawer when a node is selected, until the reader closes it: then it is their choice.
 * Over two graphs it would hide one of them: there it is opened only when it is asked for. */
function openAtSelection(state: State): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isWanted = true;
  let wasOpen = false;
  let wasComparing = false;
  let before = state.selection.peek().node;
  const stop = effect(() => {
    const isOpen = state.isInspectorOpen.value;
    const { node } = state.selection.value;
    const isNew = node !== "" && node !== before;
    before = node;
    const isComparing = state.isComparing.value;
    const begins = isComparing && !wasComparing;
    wasComparing = isComparing;
    if (!state.isDrawer.value) return;
    if (begins && isOpen) {
      wasOpen = false;
      state.isInspectorOpen.value = false;
      return;
    }
    if (wasOpen !== isOpen) isWanted = isOpen;
    wasOpen = isOpen;
    if (!isNew || !isWanted || isComparing) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!state.isComparing.peek()) state.isInspectorOpen.value = true;
    }, DOUBLE_CLICK);
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}

function App({ state }: { state: State }) {
  const sizes = useMemo(() => {
    const height = state.height.peek();
    return makeSizes(height ? { ...IN_CELL, height } : {});
  }, []);
  const usual = useRef(state.height.peek());
  useSignalEffect(() => {
    const height = state.height.value;
    if (height && height !== usual.current) sizes.height.value = height; // Python changed it
    usual.current = height;
  });
  return <Viewer state={state} sizes={sizes} />;
}

function show(host: Host, el: HTMLElement, signal: AbortSignal) {
  renderInto(<App state={createState(host, signal)} />, el);
  return () => renderInto(null, el);
}

function render({ model, el, signal }: { model: AnyModel; el: HTMLElement; signal: AbortSignal }) {
  const receive = (message: Download, [content]: DataView<ArrayBuffer>[]) => {
    if (message.action === "Download" && content) download(message, content, el.ownerDocument);
  };
  model.on("msg:custom", receive);
  signal.addEventListener("abort", () => model.off("msg:custom", receive));
  const remove = show(liveHost(model, signal), el, signal);
  hideStaticPicture(model.get("still"), el);
  return remove;
}

/** Show a session that was recorded, in a page without a kernel. */
function showRecording(recording: Recording, el: HTMLElement) {
  return show(fileHost(recording), el, new AbortController().signal);
}

/** Show the recording that a page holds, which irviz wrote as a file. */
export const showRecordedPage = (page: Document) => showPage(page, showRecording);

export default { render };
