// SPDX-License-Identifier: Apache-2.0
// Which rows of a long list are in sight. Browsers end at some twenty million pixels, so that a longer list is scrolled
// on a shorter scale: the bar jumps over rows, the wheel and the keys do not.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const TALLEST = 8_000_000;
const BEYOND = 6;

export interface Window {
  /** How tall the list is made. */
  height: number;
  first: number;
  last: number;
  /** Where the first row is drawn. */
  top: number;
  /** Brings a row into sight. */
  show: (row: number) => void;
}

export function useWindow(box: { readonly current: HTMLElement | null }, total: number, row: number, header: number, start = 0): Window {
  const [view, setView] = useState({ offset: 0, scroll: 0, height: 600 });
  const state = useRef({ offset: 0, scroll: 0 });
  const whole = total * row;
  const height = Math.min(whole, TALLEST);

  const room = useCallback(() => (box.current?.clientHeight ?? 600) - header, []);
  const scale = useCallback(() => {
    const visible = room();
    return height <= visible ? 1 : (whole - visible) / (height - visible);
  }, [whole, height]);

  const place = useCallback(
    (offset: number) => {
      const element = box.current;
      if (!element) return;
      const most = Math.max(0, whole - room());
      const wanted = Math.max(0, Math.min(most, offset));
      state.current = { offset: wanted, scroll: wanted / scale() };
      element.scrollTop = state.current.scroll;
      state.current.scroll = element.scrollTop;
      setView({ offset: wanted, scroll: element.scrollTop, height: room() });
    },
    [whole, scale],
  );

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const scrolled = (): void => {
      const scroll = element.scrollTop;
      const { offset: before, scroll: from } = state.current;
      if (scroll === from) return;
      const most = Math.max(0, whole - room());
      const far = Math.abs(scroll - from) > element.clientHeight;
      const atEnd = scroll <= 0 || scroll >= height + header - element.clientHeight - 1;
      // Near moves are taken as they are, far ones to scale.
      const offset = scale() === 1 || far || atEnd ? scroll * scale() : before + scroll - from;
      state.current = { offset: Math.max(0, Math.min(most, offset)), scroll };
      setView({ offset: state.current.offset, scroll, height: room() });
      clearTimeout(timer);
      if (scale() !== 1) timer = setTimeout(() => place(state.current.offset), 200);
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    const watch = new ResizeObserver(() => setView((old) => ({ ...old, height: room() })));
    watch.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      watch.disconnect();
      clearTimeout(timer);
    };
  }, [whole, height, place]);

  const started = useRef(false);
  useLayoutEffect(() => {
    if (started.current || total === 0) return;
    started.current = true;
    if (start > 0) place(start * row - room() / 3);
  }, [total]);

  const show = useCallback(
    (nth: number) => {
      const { offset } = state.current;
      if (nth * row < offset) place(nth * row);
      else if ((nth + 1) * row > offset + room()) place((nth + 1) * row - room());
    },
    [place, row],
  );

  const offset = Math.min(view.offset, Math.max(0, whole - view.height));
  const first = Math.max(0, Math.floor(offset / row) - BEYOND);
  const last = Math.min(total, Math.ceil((offset + view.height) / row) + BEYOND);
  return { height, first, last, top: view.scroll + first * row - offset, show };
}
