"""The style sheet of a page, and the signs in it."""

from __future__ import annotations

from typing import Final

from stepguard.core.markup import Html, tag

CSS: Final = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1a1d21;--muted:#555c66;--rule:#c3c9d1;--panel:#f5f6f8;--way:#0b57d0;
--good:#14602c;--weak:#7a5200;--bad:#9c1c12;--badbg:#fdecea}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8eb;--muted:#a7aeb8;--rule:#4a525d;--panel:#1d2127;
--way:#7db4ff;--good:#8fdba6;--weak:#f0c36a;--bad:#ffaba1;--badbg:#40140f}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header,main,footer{max-width:80rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.35rem;line-height:1.3;margin:1.2rem 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:1.4rem 0 .4rem;color:var(--muted);font-weight:600}
p{margin:.3rem 0;overflow-wrap:anywhere}a{color:var(--way)}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.3rem;background:var(--bg);padding:.3rem .6rem}
:focus-visible{outline:3px solid var(--way);outline-offset:2px}
.outcome{display:flex;gap:.5rem;align-items:flex-start;font-size:1.05rem;font-weight:600;border:2px solid;
border-radius:6px;padding:.5rem .8rem}
.outcome span{min-width:0;overflow-wrap:anywhere}
.good{color:var(--good)}.weak{color:var(--weak)}.bad{color:var(--bad)}.quiet{color:var(--muted)}
.outcome.bad,.stop.bad{background:var(--badbg)}
svg{width:20px;height:20px;flex:none;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;
stroke-linejoin:round}
.result svg,.result>summary svg{width:16px;height:16px;vertical-align:-3px;margin-right:.35rem}
code,.says{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.875rem;
overflow-wrap:anywhere}
ol{list-style:none;margin:0;padding:0}
.flow>li{position:relative;padding:0 0 .55rem 1.9rem;border-left:2px solid var(--way);margin-left:.65rem}
.flow>li:last-child{padding-bottom:.1rem}.flow.head>li{border-color:transparent}
.stop svg{width:16px;height:16px;vertical-align:-3px;margin-right:.35rem}
.plain .flow>li{border-color:var(--rule)}
.untaken .flow>li,li.untaken,.flow>li.ahead{border-left:2px dashed var(--rule)}
.untaken,.ahead>.card{color:var(--muted)}
.flow>li>svg{position:absolute;left:-11px;top:0;background:var(--bg);border-radius:50%}
.card{border:1px solid var(--rule);border-radius:6px;padding:.3rem .6rem;background:var(--panel)}
.untaken .card,.ahead>.card{background:none;border-style:dashed}
.head{font-weight:600}
.note{color:var(--muted);font-size:.8125rem;display:block;overflow-wrap:anywhere}
.badge{display:inline-block;border:1px solid;border-radius:9px;padding:0 .45rem;font-size:.75rem;font-weight:600;
margin-left:.4rem;white-space:nowrap}
.result{font-size:.875rem;border-top:1px solid var(--rule);margin-top:.25rem;padding-top:.2rem;overflow-wrap:anywhere}
.stop{border:2px solid;border-radius:6px;padding:.35rem .6rem;margin:.35rem 0;font-size:.875rem;
overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.875rem}
summary{cursor:pointer;border-radius:4px}details ul{margin:.2rem 0 .3rem;padding-left:1.1rem;font-size:.8125rem}
.branches{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(19rem,100%),1fr));gap:.6rem;margin:.3rem 0 0}
.branches.stacked{grid-template-columns:minmax(0,1fr)}main{overflow-x:auto}.card{min-width:9rem}
.branch{border:1px solid var(--rule);border-top:3px solid var(--way);border-radius:6px;padding:.35rem .5rem .2rem;
min-width:0}
.branch>p{margin:0 0 .4rem}
.branch.untaken{border-top:3px dashed var(--rule)}.plain .branch{border-top-color:var(--muted)}
.inside{border:1px solid var(--rule);border-left:3px double var(--way);border-radius:6px;padding:.5rem .5rem .2rem;
margin-top:.3rem;min-width:0}
.inside.untaken{border-left-color:var(--rule)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;font-size:.875rem;margin:.3rem 0}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere;min-width:0}
table{border-collapse:collapse;font-size:.8125rem;margin:.2rem 0;max-width:100%}
td,th{border-bottom:1px solid var(--rule);text-align:left;padding:.1rem .8rem .1rem 0;overflow-wrap:anywhere}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.8125rem;color:var(--muted);padding:0;margin:.6rem 0}
.legend li{display:flex;gap:.35rem;align-items:center}
footer{margin:1.5rem auto;color:var(--muted);font-size:.8125rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.8rem 0}.spend{width:100%;height:6rem;color:var(--way);
border-bottom:1px solid var(--rule)}.spend polyline{vector-effect:non-scaling-stroke;stroke-width:2}
@media (max-width:34rem){.flow>li{padding-left:1.25rem;margin-left:.5rem}.flow .flow>li{
padding-left:.75rem;margin-left:.35rem}.card{padding:.25rem .4rem}.branch,.inside{padding:.3rem 0 .1rem;border-left:0;
border-right:0;border-bottom:0;border-radius:0}.inside{border-top:3px double var(--way)}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.3rem}svg{width:18px;height:18px}.flow>li>svg{left:-10px}
.flow .flow>li>svg{width:14px;height:14px;left:-8px;top:.15rem}
.badge{white-space:normal}}
@media print{:root{--bg:#fff;--fg:#000;--muted:#444;--rule:#aaa;--panel:#fff;--way:#000;--good:#000;--weak:#000;
--bad:#000;--badbg:#fff;color-scheme:light}.skip{display:none}.card,.stop{break-inside:avoid}
details::details-content{content-visibility:visible;block-size:auto}}
"""

_SIGNS: Final = {
    "model": '<circle cx="12" cy="12" r="7"/>',
    "code": '<rect x="5" y="5" width="14" height="14"/>',
    "function": '<rect x="4" y="5" width="16" height="14"/><path d="M8 5v14M16 5v14"/>',
    "tool": '<path d="M7 4h10l5 8-5 8H7l-5-8z"/>',
    "person": '<circle cx="12" cy="7" r="4"/><path d="M4 21c0-6 16-6 16 0"/>',
    "choice": '<path d="M12 3l9 9-9 9-9-9z"/>',
    "loop": '<path d="M19 12a7 7 0 1 1-2-5M18 2v6h-6"/>',
    "call": '<rect x="3" y="3" width="18" height="18"/><rect x="7" y="7" width="10" height="10"/>',
    "answer": '<rect x="5" y="5" width="14" height="14" fill="currentColor"/>',
    "fold": '<path d="M12 4v1M12 11v1M12 18v1"/>',
    "proved": '<path d="M4 13l5 5L20 6"/>',
    "weak": '<path d="M4 14c4-8 12 4 16-4"/>',
    "unverified": '<path d="M8 8c0-5 8-5 8 0 0 4-4 3-4 7M12 20v1"/>',
    "stopped": '<path d="M5 5l14 14M19 5L5 19"/>',
}


def symbols() -> Html:
    """The signs, which are drawn once and referred to."""
    drawn = "".join(f'<symbol id="i-{name}" viewBox="0 0 24 24">{shape}</symbol>' for name, shape in _SIGNS.items())
    return Html(f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{drawn}</svg>')


def sign(name: str, title: str | None = None) -> Html:
    """One of the signs; without a title it is decoration beside words that say the same."""
    use = tag("use", href=f"#i-{name}")
    if title is None:
        return tag("svg", use, aria_hidden="true", viewBox="0 0 24 24")
    return tag("svg", tag("title", title), use, role="img", viewBox="0 0 24 24")
