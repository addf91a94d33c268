"""The style sheet and the only script of the report."""

from __future__ import annotations

import re
from typing import Final

_LINES: Final = """
.grid{stroke:var(--rule)}.axis{stroke:var(--muted)}.strong{font-weight:600}
.line{fill:none;stroke-width:2}.bar{fill:none;stroke-width:1.3}.mark{stroke-width:1.5}
.a0{stroke:var(--a0)}.a1{stroke:var(--a1)}.a2{stroke:var(--a2)}.a3{stroke:var(--a3)}.a4{stroke:var(--a4)}
.a5{stroke:var(--a5)}
.mark.a0{fill:var(--a0)}.mark.a1{fill:var(--a1)}.mark.a2{fill:var(--a2)}.mark.a3{fill:var(--a3)}
.mark.a4{fill:var(--a4)}.mark.cross{fill:none;stroke-width:2.4}.mark.a5{fill:var(--a5)}
"""
_PAGE: Final = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1a1d21;--muted:#555c66;--rule:#d3d7dd;--panel:#f4f5f7;--loud:#8c1d18;
--loudbg:#fde8e6;--a0:#0b57d0;--a1:#b3410e;--a2:#6b2fa8;--a3:#00695c;--a4:#a1136a;--a5:#4d4d4d;
--okfg:#14602c;--badfg:#9c1c12}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8eb;--muted:#a7aeb8;--rule:#3a414b;--panel:#1d2127;
--loud:#ffb4ab;--loudbg:#4a1512;--a0:#7db4ff;--a1:#ffab73;--a2:#cfa6ff;--a3:#5fd6c4;--a4:#ff94cf;--a5:#c8c8c8;
--okfg:#8fdba6;--badfg:#ffaba1}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main,header,footer{max-width:64rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.3rem;line-height:1.3;margin:1.2rem 0 .6rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.6rem 0 .5rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;margin:1.6rem 0 .4rem}
p{margin:.5rem 0;max-width:46rem}
a{color:var(--a0)}
.headline{font-size:1.4rem;line-height:1.35;font-weight:600;margin:.8rem 0;text-wrap:pretty}
.banner{border:2px solid var(--loud);background:var(--loudbg);color:var(--loud);padding:.6rem .9rem;font-weight:600}
.alarm{color:var(--loud);font-weight:700}
.note,figcaption,caption{color:var(--muted);font-size:.875rem}
nav ul{list-style:none;padding:0;margin:.8rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.9rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:1rem 2rem}
figure{margin:.8rem 0;min-width:0}
.chart{display:block;width:100%;max-width:31rem;height:auto;font-size:12px;fill:var(--fg);overflow:visible}
.legend{list-style:none;margin:.6rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.9rem}
.legend li{display:flex;align-items:center;gap:.45rem}
.swatch{width:34px;height:14px;flex:none}
.scroll{overflow-x:auto;margin:.7rem 0}
table{border-collapse:collapse;min-width:min(100%,38rem);font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 .35rem}
caption span{display:block;max-width:min(46rem,calc(100vw - 2rem))}
th,td{text-align:left;vertical-align:top;padding:.24rem .7rem .24rem 0;border-bottom:1px solid var(--rule)}
thead th{font-weight:600;vertical-align:bottom;border-bottom:2px solid var(--muted)}
tbody th{font-weight:400;white-space:nowrap}th[scope=rowgroup]{white-space:normal;padding-top:.6rem}
td.n,th.n{text-align:right}td.n{white-space:nowrap}
tbody.first tr:first-child>*{border-top:2px solid var(--muted)}
.guard>*{background:var(--panel)}.guard>th{font-weight:600}
.meter{display:block;height:4px;margin:2px 0 0 auto;background:var(--muted)}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.8125rem}
pre{background:var(--panel);padding:.6rem .8rem;margin:.5rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
details{margin:.45rem 0}summary{cursor:pointer;padding:.15rem 0}
.attempt{border-left:3px solid var(--rule);padding-left:.8rem}.attempt.bad{border-left-color:var(--badfg)}
.attempt table{width:100%;margin:.3rem 0}
.attempt td,.attempt th{overflow-wrap:break-word}.attempt th{white-space:nowrap}
.attempt td.asked{min-width:4.4rem}.attempt td{max-width:24rem}
.ok{color:var(--okfg)}.bad-text{color:var(--badfg);font-weight:600}
ol.lines{list-style:none;margin:.5rem 0;padding:.5rem 0;background:var(--panel)}
ol.lines li{padding:.05rem .8rem;border-left:4px solid transparent;overflow-wrap:anywhere}
ol.lines .sign{display:inline-block;width:1.3em;font-weight:700}
ol.lines q{quotes:none;white-space:pre-wrap}
ol.lines .slip,ol.lines .unread{border-left-color:var(--badfg);background:var(--loudbg)}
ol.lines .carried{border-left:4px dotted var(--badfg)}
ol.lines .why{padding-left:1rem;color:var(--badfg)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.2rem;font-size:.9rem}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
footer{margin:2rem auto;color:var(--muted);font-size:.875rem}
@media (max-width:34rem){.headline{font-size:1.15rem}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}
table{font-size:.75rem;min-width:0}th,td{padding-right:.35rem}td.n{white-space:normal}tbody th{white-space:normal}
.attempt{padding-left:.5rem}.attempt tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--rule)}
.attempt tr>*{border:0;max-width:100%}.attempt tr>:nth-child(1){min-width:2.1rem}
.attempt tr>:nth-child(2){min-width:4.4rem}
.attempt tr>:nth-child(3){min-width:8.2rem}.attempt .mono{font-size:.75rem}}
details::details-content{transition:none}
@media print{:root{--bg:#fff;--fg:#000;--muted:#444;--rule:#bbb;--panel:#f4f5f7;--loud:#8c1d18;--loudbg:#fde8e6;
--a0:#0b57d0;--a1:#b3410e;--a2:#6b2fa8;--a3:#00695c;--a4:#a1136a;--a5:#4d4d4d;
--okfg:#14602c;--badfg:#9c1c12;color-scheme:light}
body{font-size:10pt}main,header,footer{max-width:none;padding:0}nav{display:none}
.scroll{overflow:visible}table{font-size:8pt}.attempt table{font-size:8pt}
.pair{grid-template-columns:1fr 1fr}.chart{max-width:11cm}
details::details-content{content-visibility:visible;block-size:auto}
figure,tr,.chart,ol.lines li,.headline{break-inside:avoid}h2,h3,caption,summary{break-after:avoid}
thead{display:table-header-group}a{color:inherit;text-decoration:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""

CSS: Final = f"{_PAGE}{_LINES.lstrip()}"
_LIGHT: Final = dict(re.findall(r"--([\w-]+):([^;}]+)", _PAGE[: _PAGE.index("@media")]))
CHART_CSS: Final = re.sub(
    r"var\(--([\w-]+)\)",
    lambda match: _LIGHT[match[1]],
    "text{font:12px system-ui,sans-serif;fill:var(--fg)}" + _LINES.replace("\n", ""),
)
"""The style of a chart that stands alone, in the colours of the light scheme: not every program knows variables."""

# Paper cannot be clicked on; not every browser opens <details> by its style sheet.
SCRIPT: Final = """
(()=>{let closed=[];
addEventListener("beforeprint",()=>{closed=[...document.querySelectorAll("details:not([open])")];
closed.forEach(each=>{each.open=true})});
addEventListener("afterprint",()=>{closed.forEach(each=>{each.open=false});closed=[]});})();
"""
