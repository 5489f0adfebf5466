// SPDX-License-Identifier: Apache-2.0
// The times of a schedule in words; a text without a short description is returned unchanged.

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
  "October", "November", "December"];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NICKNAMES = {
  "@hourly": "every hour", "@daily": "every day at 00:00", "@weekly": "on Sunday at 00:00",
  "@monthly": "on the 1st of each month at 00:00", "@yearly": "on 1 January at 00:00",
};
const UNITS = { s: "second", m: "minute", h: "hour", d: "day" };

export function cronText(cron) {
  const text = cron.trim().toLowerCase();
  if (NICKNAMES[text]) {
    return NICKNAMES[text];
  }
  const every = text.match(/^every (\d+)([smhd])$/);
  if (every) {
    return everyText(Number(every[1]), UNITS[every[2]]);
  }
  const fields = text.split(/\s+/);
  if (fields.length !== 5 && !(fields.length === 6 && fields[0] === "0")) {
    return cron;
  }
  return fiveText(fields.slice(-5)) ?? cron;
}

const everyText = (n, unit) => (n === 1 ? `every ${unit}` : `every ${n} ${unit}s`);

function fiveText([minute, hour, day, month, weekday]) {
  const time = timeText(minute, hour);
  const date = dateText(day, month, weekday);
  if (time === null || date === null) {
    return null;
  }
  if (!time.first) {
    return `${date} ${time.text}`;
  }
  return date === "every day" ? time.text : `${time.text}, ${date}`;
}

// Returns {text, first}; first: the time comes before the days.
function timeText(minute, hour) {
  const step = minute.match(/^\*\/(\d+)$/);
  if (minute === "*" || step) {
    const part = hoursText(hour);
    const base = stepText(Number(step?.[1] ?? 1), 60, "minute", "of each hour");
    return part === null ? null : { text: `${base}${part}`, first: true };
  }
  if (!/^\d+$/.test(minute)) {
    return null;
  }
  const at = minute.padStart(2, "0");
  if (/^\d+(,\d+)*$/.test(hour)) {
    return { text: `at ${list(hour.split(",").map((x) => `${x.padStart(2, "0")}:${at}`))}` };
  }
  const some = hour.match(/^(?:(\d+)-(\d+)|\*)(?:\/(\d+))?$/);
  if (!some) {
    return null;
  }
  const range = some[1] ? ` from ${some[1].padStart(2, "0")}:${at} to ${some[2].padStart(2, "0")}:${at}`
    : minute === "0" ? "" : ` at minute ${Number(minute)}`;
  const step24 = Number(some[3] ?? 1);
  return !some[1] && 24 % step24 !== 0 ? null
    : { text: `${everyText(step24, "hour")}${range}`, first: true };
}

// A step counts within its field: */40 is minute 0 and 40 of each hour, not every 40 minutes.
function stepText(n, whole, unit, within) {
  if (whole % n === 0) {
    return everyText(n, unit);
  }
  const steps = Array.from({ length: Math.ceil(whole / n) }, (_, i) => String(i * n));
  return `at ${unit} ${list(steps)} ${within}`;
}

function hoursText(hour) {
  if (hour === "*") {
    return "";
  }
  const range = hour.match(/^(\d+)-(\d+)$/);
  if (range) {
    return ` from ${range[1].padStart(2, "0")}:00 to ${range[2].padStart(2, "0")}:59`;
  }
  return /^\d+$/.test(hour) ? ` from ${hour.padStart(2, "0")}:00 to ${hour.padStart(2, "0")}:59` : null;
}

function dateText(day, month, weekday) {
  const inMonth = month === "*" ? "" : nameText(month, MONTHS, 1);
  const onDays = weekday === "*" ? "" : nameText(weekday, DAYS, 0);
  if (inMonth === null || onDays === null || (day !== "*" && weekday !== "*")) {
    return null;
  }
  if (day !== "*") {
    return /^\d+(,\d+)*$/.test(day)
      ? `on the ${list(day.split(",").map((d) => ordinal(Number(d))))} of ${inMonth || "each month"}`
      : null;
  }
  const days = onDays === "" ? "every day" : / to /.test(onDays) ? onDays : `on ${onDays}`;
  const months = / to /.test(inMonth) ? `from ${inMonth}` : `in ${inMonth}`;
  return inMonth === "" ? days : `${days} ${months}`;
}

// "mon-fri", "1,3", "jan" as names; null for other forms.
function nameText(field, names, first) {
  const nameOf = (word) => {
    const n = /^\d+$/.test(word) ? Number(word) - first
      : names.findIndex((name) => name.toLowerCase().startsWith(word));
    return names[n];
  };
  const parts = field.split(",").map((part) => {
    const ends = part.split("-").map(nameOf);
    return ends.length > 2 || ends.includes(undefined) ? null : ends.join(" to ");
  });
  return parts.includes(null) ? null : list(parts);
}

const list = (words) => (words.length < 2 ? words.join("")
  : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

function ordinal(n) {
  const tail = n % 100 >= 11 && n % 100 <= 13 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th";
  return `${n}${tail}`;
}
