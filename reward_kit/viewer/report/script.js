"use strict";
for (const records of document.querySelectorAll(".records")) {
  const form = records.querySelector("form"), samples = [...records.querySelectorAll(":scope > .sample")];
  const [find, which, told] = ["input", "select", "output"].map((name) => form.querySelector(name));
  const texts = new Map();
  const said = (sample) => texts.get(sample) ?? texts.set(sample, sample.textContent.toLowerCase()).get(sample);
  const filter = () => {
    const words = find.value.toLowerCase().trim(), wanted = which.value.split(" ").filter(Boolean);
    let shown = 0;
    for (const sample of samples) {
      const states = sample.dataset.states.split(" ");
      sample.hidden = !(wanted.every((state) => states.includes(state)) && (!words || said(sample).includes(words)));
      shown += !sample.hidden;
    }
    told.value = shown === samples.length ? "" : `${shown.toLocaleString("en")} of ${samples.length.toLocaleString("en")} samples`;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  find.addEventListener("input", filter);
  which.addEventListener("change", filter);
  for (const button of form.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      for (const sample of samples) if (!sample.hidden) sample.open = Boolean(button.dataset.open);
    });
  }
}
