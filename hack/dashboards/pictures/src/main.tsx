// Shows one recorded dashboard: /?board=NAME.

import { createTheme, ThemeContext } from '@grafana/data';
import type { DataFrame, GrafanaTheme2 } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { GlobalStyles, PanelChrome } from '@grafana/ui';
import { StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { framesOf, type Panel, type Series, type Span } from './frames';
import { Drawn } from './panels';

/** Pixels of a row of the grid and between panels, as in Grafana. */
const row = 30;
const gap = 8;
const columns = 24;

interface Recorded extends Span {
  boards: { name: string; board: { title: string; panels: Panel[] }; answers: Record<string, Series[][]>; steps: Record<string, number>; chosen?: Record<string, string> }[];
}
interface Filled { panel: Panel; frames: DataFrame[]; span: Span }

function place(panel: Panel, width: number) {
  const column = (width + gap) / columns;
  const { x, y, w, h } = panel.gridPos;
  return { left: x * column, top: y * (row + gap), width: w * column - gap, height: h * (row + gap) - gap };
}

function Board({ title, filled, theme, width }: { title: string; filled: Filled[]; theme: GrafanaTheme2; width: number }) {
  const bottom = Math.max(...filled.map(({ panel }) => panel.gridPos.y + panel.gridPos.h)) * (row + gap);
  return (
    <div style={{ position: 'relative', height: bottom + 40, margin: gap }}>
      <div style={{ ...theme.typography.h4, height: 32, color: theme.colors.text.primary }}>{title}</div>
      {filled.map(({ panel, frames, span }) => {
        const at = place(panel, width);
        const style = { position: 'absolute', ...at, top: at.top + 36 } as const;
        if (panel.type === 'row') return <div key={panel.id} style={{ ...style, ...theme.typography.h5, color: theme.colors.text.primary, paddingTop: 6 }}>⌄ {panel.title}</div>;
        return (
          <div key={panel.id} style={style}>
            <PanelChrome width={at.width} height={at.height} title={panel.title} description={panel.description}>
              {(w, h) => <Drawn panel={panel} frames={frames} span={span} theme={theme} width={w} height={h} />}
            </PanelChrome>
          </div>
        );
      })}
    </div>
  );
}

function Page() {
  const theme = createTheme({ colors: { mode: 'dark' } });
  const [shown, show] = useState<{ title: string; filled: Filled[] }>();
  useEffect(() => {
    void (async () => {
      const recorded = (await (await fetch('/recorded.json')).json()) as Recorded;
      const name = new URLSearchParams(location.search).get('board');
      const found = recorded.boards.find((one) => one.name === name);
      if (found === undefined) throw new Error(`nothing is recorded of ${name}`);
      const filled: Filled[] = [];
      for (const panel of found.board.panels) {
        const span = { from: recorded.from, to: recorded.to, step: found.steps[panel.id] ?? recorded.step };
        filled.push({ panel, span, frames: panel.type === 'row' ? [] : await framesOf(panel, found.answers[panel.id] ?? [], span, theme) });
      }
      const chosen = found.chosen ? `  (${found.chosen['namespace']}/${found.chosen['function']})` : '';
      show({ title: found.board.title + chosen, filled });
    })();
  }, []);
  if (shown === undefined) return null;
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Board {...shown} theme={theme} width={window.innerWidth - 2 * gap} />
    </ThemeContext.Provider>
  );
}

document.body.style.background = createTheme({ colors: { mode: 'dark' } }).colors.background.canvas;
document.body.style.color = createTheme({ colors: { mode: 'dark' } }).colors.text.primary;
document.body.style.fontFamily = 'Inter, sans-serif';
document.body.style.fontSize = '14px';
await initPluginTranslations('windlass');
createRoot(document.getElementById('root')!).render(<StrictMode><Page /></StrictMode>);
