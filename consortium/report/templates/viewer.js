"use strict";
// Shows the maps that lie in the page. Every text goes in as text, never as markup.
(async () => {
  const at = (name) => document.getElementById(name);
  const data = JSON.parse(at("data").textContent);
  const [chosen, threshold, view] = [at("map"), at("threshold"), at("view")];
  const axes = ["x", "y", "z"].map(at);
  const say = (text) => { at("told").textContent = text; };
  const short = (value) => String(Number(value.toPrecision(3))).replace("-", "\u2212");
  const whole = (value) => Math.round(value) + 0;
  let shown = data.maps[0];
  let values;

  if (!document.createElement("canvas").getContext("webgl2")) {
    say("This browser draws no WebGL 2, which the viewer needs; the report has every map as pictures.");
    return;
  }
  const brain = new niivue.Niivue({
    backColor: [0, 0, 0, 1],
    crosshairColor: [1, 1, 1, 0.5],
    crosshairWidth: 0.6,
    fontColor: [0.9, 0.93, 0.95, 1],
    isColorbar: true,
    isCornerOrientationText: true,
    isRadiologicalConvention: false,
    dragAndDropEnabled: false,
    logLevel: "silent",
    multiplanarShowRender: niivue.SHOW_RENDER.ALWAYS,
  });
  brain.addColormap("up", data.colours.up);
  brain.addColormap("down", data.colours.down);
  await brain.attachToCanvas(at("brain"));
  brain.setInterpolation(false);
  const load = (base64, name, options) =>
    niivue.NVImage.loadFromBase64({ base64, name, ...options });
  brain.addVolume(await load(data.brain, "brain.nii.gz", { colormap: "gray", colorbarVisible: false }));

  const numbers = () => axes.map((input) => Number(input.value));

  function tell(place, value) {
    axes.forEach((input, k) => {
      if (document.activeElement !== input) input.value = whole(place[k]);
    });
    const where = place.map((mm) => String(whole(mm)).replace("-", "\u2212")).join(", ");
    const what = Math.abs(value) >= Number(threshold.value)
      ? `${shown.units} = ${short(value)}` : "not coloured";
    say(`${shown.name} at x, y, z = ${where} mm: ${what}`);
  }

  function value() {
    const [i, j, k] = values.mm2vox(numbers());
    const inside = [i, j, k].every((at, axis) => at >= 0 && at < values.dimsRAS[axis + 1]);
    return inside ? values.getValue(i, j, k) : 0;
  }

  function go(place) {
    axes.forEach((input, k) => { input.value = whole(place[k]); });
    brain.scene.crosshairPos = brain.mm2frac(place);
    brain.drawScene();
    tell(place, value());
  }

  function cut() {
    const least = Number(threshold.value);
    const map = brain.volumes[1];
    [map.cal_min, map.cal_max, map.cal_minNeg, map.cal_maxNeg] = [least, shown.top, -least, -shown.top];
    brain.updateGLVolume();
    at("told-threshold").textContent = `${shown.units} \u2265 ${short(least)}`;
    threshold.setAttribute("aria-valuetext", `${short(least)} of at most ${short(shown.top)}`);
  }

  async function show(number) {
    shown = data.maps[number];
    chosen.value = String(number);
    if (brain.volumes.length > 1) brain.removeVolume(brain.volumes[1]);
    values = await load(shown.image, "values.nii.gz", {});
    brain.addVolume(await load(shown.drawn, "map.nii.gz", {
      colormap: "up",
      colormapNegative: "down",
      cal_min: shown.threshold,
      cal_max: shown.top,
    }));
    threshold.min = shown.threshold;
    threshold.max = shown.top;
    threshold.step = (shown.top - shown.threshold) / 200;
    threshold.value = shown.threshold;
    cut();
    const place = shown.place ? `, ${shown.place}` : "";
    at("brain").setAttribute("aria-label",
      `${shown.name} on the brain; its peak is at ${shown.peak.map(whole).join(", ")} mm${place}`);
    go(shown.peak);
    at("units").textContent = shown.units === "value" ? "arbitrary units" : shown.units;
    document.body.dataset.shown = shown.ident;
  }

  function follow() {
    const number = data.maps.findIndex((map) => `#${map.ident}` === decodeURIComponent(location.hash));
    return show(Math.max(number, 0));
  }

  const views = {
    all: () => { brain.opts.multiplanarShowRender = niivue.SHOW_RENDER.ALWAYS; brain.setSliceType(3); },
    slices: () => { brain.opts.multiplanarShowRender = niivue.SHOW_RENDER.NEVER; brain.setSliceType(3); },
    whole: () => brain.setSliceType(4),
  };
  view.addEventListener("change", () => views[view.value]());
  chosen.addEventListener("change", () => { location.hash = data.maps[Number(chosen.value)].ident; });
  threshold.addEventListener("input", () => { cut(); tell(numbers(), value()); });
  at("peak").addEventListener("click", () => go(shown.peak));
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  axes.forEach((input) => input.addEventListener("change", () => go(numbers())));
  addEventListener("hashchange", follow);
  brain.onLocationChange = (told) => {
    if (!values) return;
    const place = Array.from(told.mm).slice(0, 3);
    axes.forEach((input, k) => { if (document.activeElement !== input) input.value = whole(place[k]); });
    tell(place, value());
  };
  views.all();
  await follow();
})();
