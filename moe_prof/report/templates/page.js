"use strict";
(function () {
  // A link to a folded figure opens what holds it.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const holder = target && target.closest("details");
    if (holder && !holder.open) {
      holder.open = true;
      target.scrollIntoView();
    }
  }
  window.addEventListener("hashchange", reveal);
  reveal();

  const LEVEL_REM = 1.25;
  const LEAST_NAMED = 0.012;

  function flame(root) {
    const holder = root.querySelector(".boxes");
    const boxes = Array.from(holder.querySelectorAll("button"), function (element) {
      return {
        element: element,
        level: Number(element.dataset.level),
        left: Number(element.dataset.left),
        width: Number(element.dataset.width),
        title: element.title,
        name: element.textContent,
      };
    });
    const byElement = new Map(boxes.map((box) => [box.element, box]));
    const picked = root.querySelector(".picked");
    const found = root.querySelector(".found");
    const input = root.querySelector("input");
    let zoomed = boxes[0];

    function within(box, outer) {
      const middle = box.left + box.width / 2;
      return middle >= outer.left && middle <= outer.left + outer.width;
    }

    function shortTitle(box) {
      return box.name || box.title.replace(/, [^,]*$/, "");
    }

    function draw() {
      for (const box of boxes) {
        const outer = box.level < zoomed.level && within(zoomed, box);
        const inner = box.level >= zoomed.level && within(box, zoomed);
        const style = box.element.style;
        box.element.hidden = !(outer || inner);
        box.element.classList.toggle("outer", outer);
        const left = outer ? 0 : (box.left - zoomed.left) / zoomed.width;
        const width = outer ? 1 : Math.min(1, box.width / zoomed.width);
        style.left = 100 * Math.max(0, left) + "%";
        style.width = 100 * width + "%";
        style.top = box.level * LEVEL_REM + "rem";
        box.element.textContent = width > LEAST_NAMED ? shortTitle(box) : "";
      }
    }

    function zoom(box) {
      zoomed = box;
      picked.textContent = box.title;
      draw();
      focus(box);
    }

    function focus(box) {
      for (const other of boxes) other.element.tabIndex = other === box ? 0 : -1;
      box.element.focus();
      picked.textContent = box.title;
    }

    function neighbour(box, key) {
      const shown = boxes.filter((other) => !other.element.hidden);
      if (key === "ArrowUp") {
        return shown.find((o) => o.level === box.level - 1 && within(box, o));
      }
      if (key === "ArrowDown") {
        return shown.find((o) => o.level === box.level + 1 && within(o, box));
      }
      const row = shown.filter((other) => other.level === box.level);
      return row[row.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
    }

    function search() {
      const words = input.value.trim().toLowerCase();
      let count = 0;
      for (const box of boxes) {
        const hit = words !== "" && box.title.toLowerCase().includes(words);
        box.element.classList.toggle("hit", hit);
        count += hit;
      }
      found.textContent = words === "" ? "" : count + (count === 1 ? " box" : " boxes");
    }

    holder.addEventListener("click", function (event) {
      const box = byElement.get(event.target);
      if (box) zoom(box);
    });
    holder.addEventListener("mouseover", function (event) {
      const box = byElement.get(event.target);
      if (box) picked.textContent = box.title;
    });
    holder.addEventListener("keydown", function (event) {
      const box = byElement.get(event.target);
      if (!box) return;
      if (event.key === "Escape") {
        zoom(boxes[0]);
      } else if (event.key.startsWith("Arrow")) {
        event.preventDefault();
        const next = neighbour(box, event.key);
        if (next) focus(next);
      }
    });
    input.addEventListener("input", search);
  }

  document.querySelectorAll(".flame").forEach(flame);
})();
