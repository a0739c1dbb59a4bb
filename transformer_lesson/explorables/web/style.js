// The style of every explorable: one color per role; variables switch between light and dark.

export const STYLE = `
:host { display: block; color-scheme: light;
  --paper: #ffffff; --card: #f4f7fa; --ink: #18212b; --soft: #566372; --line: #cfd7e0;
  --query: #a84500; --key: #0b62a4; --value: #08694d; --focus: #6a35d9;
  --none: #f4f8fc; --full: #0b3c78; --plus: #0b62a4; --minus: #b8500a; --hidden: #d5dbe2; }
:host([data-theme="dark"]) { color-scheme: dark;
  --paper: #14191f; --card: #1e262f; --ink: #e8edf2; --soft: #a3b0bd; --line: #3a4653;
  --query: #ff9b57; --key: #6db7f5; --value: #4fd1a5; --focus: #b79bff;
  --none: #1b222a; --full: #9fd0ff; --plus: #6db7f5; --minus: #ff9b57; --hidden: #333d48; }
* { box-sizing: border-box; }
section { position: relative; max-width: 1180px; padding: 8px 16px; border: 1px solid var(--line);
  border-radius: 12px; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h3 { margin: 0; font-size: 18px; line-height: 1.3; font-weight: 600; }
p { margin: 0; }
.task { margin: 0 0 6px; }
.task button { margin-left: 8px; padding: 0 9px; font-size: 14px; }
.task[data-done] { color: var(--soft); } .task .mark { color: var(--value); }
.mark { display: inline-block; min-width: 1.3em; }
.turn { margin: 8px 0 0; padding: 3px 10px; border-left: 4px solid var(--value); font-size: 14px; }
.turn .mark { color: var(--value); } .turn button { margin-left: 6px; padding: 0 8px; }
.turn [aria-pressed="true"] { background: var(--value); border-color: var(--value); }
.turn:not(.hide) ~ .said { min-height: 29px; margin-top: 3px; }
.route, .turns { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; min-width: 0; }
.route { flex: 1 1 100%; } .turns { white-space: nowrap; font-size: 14px; color: var(--soft); }
.turns button { padding: 0 8px; color: var(--ink); } [inert] { opacity: .35; }
.controls .tour { position: relative; padding-bottom: 6px; background: linear-gradient(var(--value)
  0 0) 0 100% / var(--to, 0) 3px no-repeat local, linear-gradient(var(--line) 0 0) 0 100% / 100%
  3px no-repeat local; } .tour legend { display: none; }
.tour button[aria-pressed="true"] { background: var(--value); border-color: var(--value); }
.head { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: start; margin: 0 0 6px; }
.head h3 { flex: 1 1 240px; }
.controls { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 0 0 8px; }
.controls label, .controls fieldset { display: inline-flex; flex-wrap: wrap; gap: 6px;
  align-items: center; margin: 0; padding: 0; border: 0; min-width: 0; max-width: 100%; }
.controls .dense { gap: 4px; } .close { column-gap: 8px; font-size: 14px; }
.close input { accent-color: var(--value); } .close .goes { min-width: 5.8em; padding: 2px 4px; }
.close input[type="range"] { width: 84px; } .close textarea { max-width: 17em; }
.close button { padding: 2px 8px; }
.controls .outcome { flex: 1 1 200px; flex-wrap: nowrap; overflow-x: auto; padding: 0;
  background: none; gap: 3px; }
@media (min-width: 1100px) { .outcome::before { content: "→" / ""; flex: none; } }
.controls .near { flex-basis: 100%; } .outcome button { flex: none; padding: 1px 4px; }
@media (max-width: 640px) { .controls .outcome { flex-basis: 100%; } }
.dense button { padding: 1px 7px; font-size: 13px; line-height: 1.4; }
.dense input[type="range"] { width: 92px; } .dense output { min-width: 2em; }
legend { float: left; padding: 0 6px 0 0; }
input, textarea, select, button { font: inherit; color: inherit; accent-color: var(--key); }
textarea, select, input[type="number"] { background: var(--paper); border: 1px solid var(--soft);
  border-radius: 6px; padding: 3px 8px; max-width: 100%; }
textarea { width: 36em; field-sizing: content; resize: none; vertical-align: top; }
input[type="number"] { width: 4.6em; padding-right: 2px; }
input[type="range"] { width: 104px; max-width: 100%; margin: 0; }
output { min-width: 2em; font-variant-numeric: tabular-nums; color: var(--soft); }
button { background: var(--paper); border: 1px solid var(--soft); border-radius: 7px;
  padding: 2px 10px; min-width: 24px; min-height: 24px; cursor: pointer; }
button[aria-pressed="true"] { background: var(--ink); border-color: var(--ink);
  color: var(--paper); }
.play { min-width: 6.5em; }
button:disabled { opacity: .5; cursor: default; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
.picture { position: relative; overflow-x: auto; margin: -4px; padding: 4px; }
svg { display: block; overflow: visible; }
svg text { font-size: 14px; } svg text:not([fill]) { fill: var(--ink); }
svg .small { font-size: 12px; font-variant-numeric: tabular-nums; }
svg .small:not([fill]) { fill: var(--soft); }
svg .number { font-size: 12px; font-variant-numeric: tabular-nums; }
svg .size-13 { font-size: 13px; } svg .size-12 { font-size: 12px; }
svg .size-16 { font-size: 16px; }
svg .size-20 { font-size: 20px; font-weight: 600; }
svg .answer { font-size: 28px; font-weight: 600; }
svg .strong { font-weight: 600; } svg .sick { fill: var(--query); } svg .sound { fill: var(--key); }
svg .code { font: 12px ui-monospace, Menlo, Consolas, monospace; white-space: pre; }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
svg .struck { text-decoration: line-through; }
svg [tabindex] { outline: none; }
svg [role="button"] { cursor: pointer; }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
svg .bar-place { fill: transparent; stroke: none; }
svg .picked { stroke: var(--pressed, var(--query)); stroke-width: 2; }
svg .box { fill: var(--card); stroke: var(--line); }
svg [aria-pressed="true"] .box, svg .box[aria-pressed="true"] { stroke: var(--pressed, var(--query));
  stroke-width: 2.5; }
svg .marked { stroke: var(--value); stroke-width: 2.5; }
svg .cell { stroke: var(--paper); stroke-width: 1; }
svg .ribbon { fill: none; stroke: var(--key); stroke-linecap: round; }
svg .crossing { stroke: var(--value); }
svg .arrives { animation: arrive .45s; }
@keyframes arrive { from { transform: translate(var(--dx), var(--dy)); } }
svg .opens { animation: open .35s; } @keyframes open { from { transform: scale(.3); opacity: 0; } }
svg .opened { fill: var(--value); opacity: .18; } svg .here,
svg .box.here[aria-pressed] { fill: var(--value); stroke: var(--value); }
svg .drops { animation: drop .5s ease-in; } @keyframes drop { from { transform: translateY(-60px); } }
svg .grows { transform-box: fill-box; animation: grow .35s; }
@keyframes grow { from { transform: scaleX(0); } }
svg .grab { cursor: grab; } svg .grab [role="button"] { cursor: inherit; }
svg .hand { fill: none; stroke: transparent; stroke-width: 11px; cursor: pointer; }
svg .faint { opacity: .12; } svg .axis { stroke: var(--line); }
svg [data-lit], svg [data-lit] .box { stroke: var(--focus); stroke-width: 2.5; opacity: 1; }
svg text[data-lit] { stroke: none; font-weight: 700; }
svg :focus-visible, svg :focus-visible .box { stroke: var(--focus) !important;
  stroke-width: 3px !important; }
svg text:focus-visible { stroke: none !important; outline: 2px solid var(--focus); }
#keys { position: absolute; right: 14px; bottom: 0; padding: 0 8px; border-radius: 8px;
  background: var(--focus); color: var(--paper); font-size: 12px; line-height: 14px;
  visibility: hidden; }
.picture:has(svg :focus-visible) ~ #keys { visibility: visible; }
svg rect, svg circle, svg path, svg text { transition: x .25s, y .25s, cx .25s, cy .25s,
  r .25s, width .25s, height .25s, opacity .25s, fill .25s, stroke-width .25s, d .25s; }
svg .still, svg .still *, svg .quick * { transition: none; }
@media (prefers-reduced-motion: reduce) { svg * { transition: none !important;
  animation: none !important; } }
.tip { position: absolute; top: 0; left: 0; z-index: 2; max-width: 280px; padding: 5px 10px;
  border-radius: 8px; background: var(--ink); color: var(--paper); font-size: 13px;
  line-height: 1.35; pointer-events: none; visibility: hidden; }
.said { margin-top: 12px; padding: 5px 10px; border-radius: 9px; background: var(--card);
  font-size: 14px; line-height: 1.4; }
@media (min-width: 641px) { section > .said { min-height: 49px; } }
.ruler { position: absolute; display: grid; visibility: hidden; }
.ruler span { grid-area: 1 / 1; }
.save { display: flex; gap: 5px; align-items: center; color: var(--soft); font-size: 12px; }
.save button { padding: 0 6px; }
.save span { max-width: 22em; user-select: all; }
.hide, .controls .hide { display: none; }
/* the map */
.fold { padding: 0 8px; font-size: 14px; border-color: var(--focus); }
.map h3 { font-size: 15px; }
.map .card, .more { font-size: 14px; line-height: 1.4; } .card .said { padding: 0; }
/* a card beside the picture, or below it if there is no room */
.beside { display: flex; flex-wrap: wrap; gap: 14px 24px; }
.card { flex: 1 1 230px; min-width: 0; padding: 10px 14px; border-left: 3px solid var(--focus);
  background: var(--card); border-radius: 0 9px 9px 0; align-self: flex-start; }
.card h4 { margin: 0 0 4px; font-size: 16px; }
.card p, .card code, .more p, .more code { display: block; margin: 0 0 5px; }
.more .fold { margin: 0 0 8px; }
.card code, .more code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 13px; }
.map a:not(.hide) { display: inline-block; line-height: 24px; }
a { color: var(--key); }
/* on a phone the controls stay in view above the picture */
@media (max-width: 640px) { .tip { position: fixed; top: auto !important; bottom: 8px; }
  .controls { position: sticky; top: var(--explorable-top, 0px);
  z-index: 1; padding: 6px 0; background: var(--paper); } .controls .dense { padding: 2px;
  flex-wrap: nowrap; overflow-x: auto; }
  .controls .dense > * { flex: none; white-space: nowrap; } }
@media print { .controls, .task, .save, .fold, .tip { display: none; } }
`;
