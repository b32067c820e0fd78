"use strict";
// Sorting by a click on a column's head, choosing rows or sections by what they say of themselves, and one metric's column.
// Pages are complete without this script; it asks for nothing and stores nothing.
(function () {
  // The number a cell begins with ("0.0973 ± 0.0040" is 0.0973; digits may be grouped by narrow spaces), or null.
  function number(text) {
    var plain = text.replace(/\u202f/g, "");
    if (/^-?inf/.test(plain)) return plain[0] === "-" ? -Infinity : Infinity;
    var value = parseFloat(plain);
    return /^[-+]?[\d.]/.test(plain) && !isNaN(value) ? value : null;
  }

  // What a cell is sorted by: its place, where it gives one, or its words.
  function content(row, column) {
    var cell = row.cells[column];
    return cell.getAttribute("data-order") || cell.textContent.trim();
  }

  function blank(text) {
    return text === "nan" || /^([–-](\s|$)|$)/.test(text);
  }

  // Rows in the order of a column; blanks come last both ways, and equal rows keep their order.
  function sorted(rows, column, sign) {
    var keys = rows.map(function (row) { return content(row, column); });
    var numeric = keys.every(function (key) { return blank(key) || number(key) !== null; });
    return rows
      .map(function (row, index) { return { row: row, key: keys[index], index: index }; })
      .sort(function (a, b) {
        if (blank(a.key) || blank(b.key)) return blank(a.key) - blank(b.key) || a.index - b.index;
        var x = numeric ? number(a.key) : a.key.toLowerCase();
        var y = numeric ? number(b.key) : b.key.toLowerCase();
        return (x < y ? -sign : x > y ? sign : 0) || a.index - b.index;
      })
      .map(function (entry) { return entry.row; });
  }

  // The whole cell of the head takes the click; the button within it is for the keyboard.
  function makeSortable(table) {
    var body = table.tBodies[0];
    var heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent.trim();
      head.textContent = "";
      head.appendChild(button);
      head.addEventListener("click", function () {
        var sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        sorted(Array.from(body.rows), column, sign).forEach(function (row) { body.appendChild(row); });
      });
    });
  }

  // A form and what it chooses from: selects with data-choice show the elements (rows or sections) with that value; the
  // one with data-metric shows one of the columns that are marked so.
  function makeFilter(form) {
    var place = document.getElementById(form.getAttribute("data-for"));
    var items = Array.from(place.getElementsByTagName("*")).filter(function (element) {
      return element.getAttribute("data-values") !== null;
    });
    var values = items.map(function (item) { return JSON.parse(item.getAttribute("data-values")); });
    var selects = Array.from(form.getElementsByTagName("select"));
    var output = form.getElementsByTagName("output")[0];

    function apply() {
      var shown = 0;
      items.forEach(function (item, index) {
        item.hidden = !selects.every(function (select) {
          var name = select.getAttribute("data-choice");
          return name === null || select.value === "" || values[index][name] === select.value;
        });
        shown += item.hidden ? 0 : 1;
      });
      output.textContent = shown + " of " + items.length + " " + form.getAttribute("data-items");
    }

    function choose(metric) {
      Array.from(place.getElementsByTagName("table")).forEach(function (table) {
        Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
          if (head.getAttribute("data-metric") === null) return;
          var hide = metric !== "" && head.getAttribute("data-metric") !== metric;
          head.hidden = hide;
          Array.from(table.tBodies[0].rows).forEach(function (row) { row.cells[column].hidden = hide; });
        });
      });
    }

    selects.forEach(function (select) {
      select.addEventListener("change", function () {
        if (select.getAttribute("data-metric") !== null) choose(select.value);
        else apply();
      });
      select.value = "";
    });
    form.hidden = false;
    apply();
  }

  Array.from(document.getElementsByTagName("table")).forEach(function (table) {
    if (table.getAttribute("data-sort") !== null) makeSortable(table);
  });
  Array.from(document.getElementsByTagName("form")).forEach(makeFilter);
})();
