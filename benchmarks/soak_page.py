"""What the soak runs in the kernel (Python) and in the page around it (JavaScript)."""

ALL_RAN = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells].every(
    cell => cell.type !== 'code' || cell.executionCount)"""
IN_KERNEL = """
import gc, math
import ipywidgets, psutil
from IPython.display import JSON
from ipywidgets.widgets.widget import _instances
from transformer_lesson.explorables.base import Explorable, as_html
from transformer_lesson.files import visible

def soak_explorables(ids):
    return JSON([i for i in ids if isinstance(_instances.get(i), Explorable)])

def soak_position(control):
    if isinstance(control, ipywidgets.FloatLogSlider):
        return math.log(control.value, control.base)
    return getattr(control, "index", control.value)  # of options: which one

def soak_state(model_id):
    explorable = _instances[model_id]
    drawn = explorable.render()
    positions = [soak_position(control) for control in explorable.controls.values()]
    html = as_html(drawn._replace(text=visible(drawn.text)))
    return JSON({"name": repr(explorable), "positions": positions, "html": html})

def soak_memory():
    gc.collect()
    return JSON([psutil.Process().memory_info().rss])
"""
WATCH = """async code => {
    const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
    window.soak = {open: 0, problems: []};
    window.soak.ask = async expression => {
        const asked = kernel.requestExecute({
            code: '', silent: true, store_history: false, user_expressions: {answer: expression}});
        const {answer} = (await asked.done).content.user_expressions;
        if (answer.status !== 'ok') throw new Error(`${answer.ename}: ${answer.evalue}`);
        return answer.data['application/json'];
    };
    await kernel.requestExecute({code, silent: true, store_history: false}).done;
    kernel.iopubMessage.connect((_, {header, content}) => {
        if (header.msg_type === 'status') window.soak.open += content.execution_state === 'busy'
            ? 1 : content.execution_state === 'idle' ? -1 : 0;
        if (header.msg_type === 'error') window.soak.problems.push(content.traceback.join(' '));
        if (header.msg_type === 'stream') window.soak.problems.push(content.text);
    });
}"""
FIND = """async () => {
    const found = [];
    for (const cell of window.jupyterapp.shell.currentWidget.content.widgets) {
        const roots = [...cell.node.querySelectorAll('.explorable')];
        if (roots.length === 0) continue;
        const views = cell.model.sharedModel.outputs.map(
            output => output.data?.['application/vnd.jupyter.widget-view+json']?.model_id);
        const ids = await window.soak.ask(
            `soak_explorables(${JSON.stringify(views.filter(id => id))})`);
        if (ids.length !== roots.length) throw new Error('a cell hides an explorable');
        found.push(...ids.map((id, i) => ({id, root: roots[i]})));
    }
    window.soak.found = found;
    return found.length;
}"""
SETTLED = """async number => {
    if (window.soak.open > 0) return 'the kernel is still at work';
    const {id, root} = window.soak.found[number];
    const state = await window.soak.ask(`soak_state(${JSON.stringify(id)})`);
    const controls = [...root.querySelector('.widget-hbox').children];
    const shown = control => {
        const slider = control.querySelector('.noUi-target');
        if (slider) return slider.noUiSlider.get(true);
        const field = control.querySelector('textarea, input[type=text]');
        if (field) return field.value;
        const box = control.querySelector('input[type=checkbox]');
        if (box) return box.checked;
        if (control.matches('.widget-toggle-button')) return control.matches('.mod-active');
        const buttons = [...control.querySelectorAll('.widget-toggle-button')];
        const chosen = buttons.findIndex(button => button.matches('.mod-active'));
        return chosen < 0 ? null : chosen;
    };
    for (const [i, wanted] of state.positions.entries()) {
        const got = shown(controls[i]);
        const equal = typeof wanted === 'number' && typeof got === 'number'
            ? Math.abs(got - wanted) < 1e-6 : got === wanted;
        if (!equal) return `${state.name}: control ${i} shows ${got}, the kernel has ${wanted}`;
    }
    const drawn = document.createElement('template');
    drawn.innerHTML = state.html;
    const picture = root.querySelector('.widget-html-content:has(img)');
    return picture.innerHTML === drawn.innerHTML ? '' : `${state.name}: another picture is shown`;
}"""
