'use strict';

// Draws the charts of the page: Vega-Lite specifications over the data that the page carries. The
// numbers come ready; nothing is computed here but what a label shows.
(() => {
  const data = JSON.parse(document.getElementById('chart-data').textContent);

  const phases = ['wait', 'forward', 'backward', 'optimizer', 'rest', 'exchange'].filter(
    (phase) => phase !== 'exchange' || data.settings.some((setting) => setting.phases.exchange > 0),
  );
  const seriesNames = [...new Set(data.settings.map((setting) => setting.series))];
  const isDense = (setting) => setting.sparsity === 0;

  const percent = (share) => `${+(100 * share).toFixed(1)}%`;
  const label = (setting) =>
    isDense(setting) ? setting.series : `${setting.series} ${percent(setting.sparsity)}`;

  /** Colours of the page, as they are now: light or dark. */
  function palette() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const list = (name) => colour(name).split(',').map((entry) => entry.trim());
    return {
      ink: colour('ink'),
      quiet: colour('quiet'),
      line: colour('line'),
      grid: colour('grid'),
      card: colour('card'),
      accent: colour('accent'),
      pale: colour('pale'),
      series: list('series'),
      phases: list('phases'),
    };
  }

  /** @param width of the chart's place: legends take as many columns as fit there */
  function config(colours, width) {
    const longest = Math.max(9, ...seriesNames.map((name) => Math.min(name.length, 36)));
    const font = getComputedStyle(document.body).fontFamily;
    return {
      background: null,
      font,
      axis: {
        labelColor: colours.quiet,
        labelLimit: Math.round(width / 3),
        titleColor: colours.quiet,
        gridColor: colours.grid,
        domainColor: colours.line,
        tickColor: colours.line,
        labelFlush: false,
        labelFontSize: 12,
        titleFontSize: 12,
        titleFontWeight: 'normal',
        titlePadding: 8,
      },
      axisX: { tickCount: Math.max(3, Math.floor(width / 75)) },
      legend: {
        labelColor: colours.ink,
        titleColor: colours.quiet,
        labelFontSize: 12,
        labelLimit: Math.min(280, width - 60),
        columns: Math.max(1, Math.floor((width - 40) / (30 + 7 * longest))),
        orient: 'top',
        title: null,
        symbolOpacity: 1,
        symbolSize: 90,
        offset: 8,
      },
      view: { stroke: null },
    };
  }

  /** Series by colour and by shape, so that neither has to do it alone; dense ones are ink. */
  function seriesScales(colours, shown = data.settings) {
    const domain = [...new Set(shown.map((setting) => setting.series))];
    const dense = new Set(data.settings.filter(isDense).map((setting) => setting.series));
    const others = seriesNames.filter((name) => !dense.has(name));
    const shapes = ['circle', 'square', 'triangle-up', 'triangle-down', 'triangle-right', 'cross'];
    const index = (name) => others.indexOf(name);
    const range = (list, forDense) =>
      domain.map((name) => (dense.has(name) ? forDense : list[index(name) % list.length]));
    return {
      color: {
        field: 'series',
        type: 'nominal',
        scale: { domain, range: range(colours.series, colours.ink) },
      },
      shape: {
        field: 'series',
        type: 'nominal',
        scale: { domain, range: range(shapes, 'diamond') },
      },
    };
  }

  const seconds = (title) => ({ axis: { title, format: '~s' }, type: 'quantitative' });
  const share = { axis: { format: '~%', title: 'accuracy on the test set' }, type: 'quantitative' };
  const sparsityAxis = {
    field: 'sparsity',
    type: 'quantitative',
    scale: { zero: true, nice: true },
    axis: { format: '~%', title: 'sparsity', tickCount: 5 },
  };
  const base = (description, height) => ({
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    description,
    width: 'container',
    height,
    autosize: { type: 'fit-x', contains: 'padding' },
  });

  /** Names of the marks on the front, without those that would lie over another. */
  function frontLabels(settings) {
    const range = (field) => {
      const values = settings.map((setting) => setting[field]);
      return Math.max(...values) - Math.min(...values) || 1;
    };
    const [wide, high] = [range('seconds'), range('accuracy')];
    const near = (a, b) =>
      Math.abs(a.seconds - b.seconds) < 0.08 * wide && Math.abs(a.accuracy - b.accuracy) < 0.08 * high;
    const shown = [];
    for (const setting of settings.filter((entry) => entry.front && entry.label)) {
      if (!shown.some((other) => near(other, setting))) shown.push(setting);
    }
    return shown;
  }

  function frontSpec(colours) {
    const { color, shape } = seriesScales(colours);
    const settings = data.settings.map((setting) => ({
      series: setting.series,
      run: setting.run,
      label: isDense(setting) ? '' : percent(setting.sparsity),
      sparsity: setting.sparsity,
      seconds: setting.train_seconds.mean,
      accuracy: setting.accuracy.mean,
      front: setting.front,
    }));
    const labels = frontLabels(settings);
    const x = {
      field: 'seconds',
      type: 'quantitative',
      scale: { zero: false, nice: true },
      axis: { title: 'training time, s' },
    };
    const y = { field: 'accuracy', ...share, scale: { zero: false, nice: true } };
    const tooltip = [
      { field: 'series' },
      { field: 'sparsity', format: '.0%' },
      { field: 'seconds', title: 'training time, s', format: '.2f' },
      { field: 'accuracy', format: '.2%' },
    ];
    return {
      ...base('Accuracy against training time, with the Pareto front.', 280),
      layer: [
        {
          data: { values: settings.filter((setting) => setting.front) },
          mark: { type: 'line', interpolate: 'step-after', color: colours.quiet, strokeWidth: 1.5 },
          encoding: { x, y, detail: { field: 'run' }, order: { field: 'seconds' } },
        },
        {
          data: { values: data.points },
          mark: { type: 'point', filled: true, size: 22, opacity: 0.45 },
          encoding: {
            x, y, color, shape,
            tooltip: [tooltip[0], tooltip[1], { field: 'seed' }, tooltip[2], tooltip[3]],
          },
        },
        {
          data: { values: settings },
          mark: { type: 'point', filled: true, size: 110, opacity: 1, stroke: colours.card },
          encoding: { x, y, color, shape, tooltip },
        },
        labels.length > 0 && {
          data: { values: labels },
          mark: { type: 'text', dy: -13, color: colours.ink, fontSize: 11 },
          encoding: { x, y, text: { field: 'label' } },
        },
      ].filter(Boolean),
    };
  }

  /** A line of means with a band from the lowest to the highest seed. */
  function bandLayers(values, colours, { color, shape }, y, tooltip) {
    // A scale without values would be a warning.
    if (values.length === 0) return [];
    const points = values.filter((row) => !row.start);
    return [
      {
        data: { values },
        mark: { type: 'area', opacity: 0.18, aria: false },
        encoding: { x: sparsityAxis, y: { field: 'low', ...y }, y2: { field: 'high' }, color },
      },
      {
        data: { values },
        mark: { type: 'line', strokeWidth: 2 },
        encoding: { x: sparsityAxis, y: { field: 'mean', ...y }, color },
      },
      {
        data: { values: points },
        mark: { type: 'point', filled: true, size: 70, opacity: 1, stroke: colours.card },
        encoding: { x: sparsityAxis, y: { field: 'mean', ...y }, color, shape, tooltip },
      },
    ];
  }

  const spreadRow = (setting, field) => ({
    series: setting.series,
    run: setting.run,
    sparsity: setting.sparsity,
    seeds: setting.seeds.length,
    ...setting[field],
  });

  /** Rows of the pruned settings; each series starts where its dense network is. */
  function rowsFromDense(settings, field, startOf) {
    const rows = settings.map((setting) => spreadRow(setting, field));
    const starts = new Map();
    for (const { series, run } of rows) {
      const dense = data.settings.find((setting) => isDense(setting) && setting.run === run);
      if (dense) starts.set(series, { series, run, sparsity: 0, start: true, ...startOf(dense) });
    }
    return [...starts.values(), ...rows];
  }

  function accuracySpec(colours) {
    const { color, shape } = seriesScales(colours);
    const y = { ...share, scale: { zero: false, nice: true } };
    const dense = data.settings.filter(isDense).map((setting) => spreadRow(setting, 'accuracy'));
    const pruned = rowsFromDense(
      data.settings.filter((setting) => !isDense(setting)), 'accuracy', (start) => start.accuracy);
    const tooltip = ['mean', 'low', 'high'].map((field) => ({ field, format: '.2%' }));
    return {
      ...base('Accuracy against sparsity for each criterion.', 280),
      layer: [
        dense.length > 0 && {
          data: { values: dense },
          mark: { type: 'rule', strokeDash: [5, 4], strokeWidth: 1.5 },
          encoding: {
            y: { field: 'mean', ...y },
            color,
            tooltip: [{ field: 'series' }, ...tooltip],
          },
        },
        ...bandLayers(
          pruned, colours, { color, shape }, y,
          [{ field: 'series' }, { field: 'sparsity', format: '.0%' }, { field: 'seeds' }, ...tooltip],
        ),
        dense.length > 0 && {
          data: { values: dense },
          mark: { type: 'point', filled: true, size: 90, opacity: 1, stroke: colours.card },
          encoding: {
            x: sparsityAxis,
            y: { field: 'mean', ...y },
            color, shape,
            tooltip: [{ field: 'series' }, ...tooltip],
          },
        },
      ].filter(Boolean),
    };
  }

  function speedupSpec(colours) {
    const settings = data.settings.filter((setting) => setting.train_speedup);
    const { color, shape } = seriesScales(colours, settings);
    const y = {
      type: 'quantitative',
      axis: { title: 'times as fast as dense', format: '~r' },
      scale: { zero: true, nice: true },
    };
    const tooltip = ['mean', 'low', 'high'].map((field) => ({ field, format: '.2f' }));
    const counted = settings.flatMap(({ series, sparsity, macs_ratio: ratio }) => [
      { series, sparsity: 0, ratio: 1 },
      { series, sparsity, ratio },
    ]);
    return {
      ...base('Training speedup over the dense network against sparsity.', 280),
      layer: [
        {
          data: { values: [{ one: 1 }] },
          mark: { type: 'rule', color: colours.quiet, strokeWidth: 1 },
          encoding: { y: { field: 'one', ...y } },
        },
        {
          data: { values: counted },
          mark: { type: 'line', strokeDash: [5, 4], strokeWidth: 1.25, opacity: 0.8 },
          encoding: { x: sparsityAxis, y: { field: 'ratio', ...y }, color },
        },
        ...bandLayers(
          rowsFromDense(settings, 'train_speedup', () => ({ mean: 1, low: 1, high: 1 })), colours, { color, shape }, y,
          [{ field: 'series' }, { field: 'sparsity', format: '.0%' }, ...tooltip],
        ),
      ],
    };
  }

  function timeSpec(colours) {
    const names = data.settings.map(label);
    const values = data.settings.flatMap((setting) =>
      phases.map((phase, order) => ({
        setting: label(setting), phase, order, seconds: setting.phases[phase],
      })),
    );
    return {
      ...base('Training seconds by phase.', Math.max(120, 60 + 24 * names.length)),
      data: { values },
      mark: { type: 'bar', stroke: colours.card, strokeWidth: 1 },
      encoding: {
        y: {
          field: 'setting',
          type: 'nominal',
          sort: names,
          axis: { title: null, labelColor: colours.ink, domain: false, ticks: false },
        },
        x: { field: 'seconds', ...seconds('training time, s') },
        color: {
          field: 'phase',
          type: 'nominal',
          scale: { domain: phases, range: colours.phases },
        },
        order: { field: 'order' },
        tooltip: [{ field: 'setting' }, { field: 'phase' }, { field: 'seconds', format: '.2f' }],
      },
    };
  }

  function layersSpec(colours) {
    // Names may repeat; a row is its place.
    const values = data.layers.map((layer, order) => ({
      ...layer,
      row: `${order} ${layer.name}`,
      left: `${layer.after} of ${layer.before}`,
    }));
    const y = {
      field: 'row',
      type: 'nominal',
      sort: values.map((layer) => layer.row),
      axis: {
        title: null,
        labelExpr: "slice(datum.label, indexof(datum.label, ' ') + 1)",
        labelColor: colours.ink,
        domain: false,
        ticks: false,
      },
    };
    const tooltip = ['name', 'op', 'before', 'after'].map((field) => ({ field }));
    const bar = (field, color, size) => ({
      mark: { type: 'bar', color, size },
      encoding: {
        y,
        x: { field, type: 'quantitative', axis: { title: 'channels' } },
        tooltip,
      },
    });
    return {
      ...base('Channels of each layer, before and after.', Math.max(100, 50 + 26 * values.length)),
      data: { values },
      layer: [
        bar('before', colours.pale, 18),
        bar('after', colours.accent, 10),
        {
          mark: { type: 'text', align: 'left', dx: 6, color: colours.quiet },
          encoding: {
            y,
            x: { field: 'before', type: 'quantitative' },
            text: { field: 'left' },
          },
        },
      ],
    };
  }

  const specs = {
    front: frontSpec,
    accuracy: accuracySpec,
    speedup: speedupSpec,
    time: timeSpec,
    layers: layersSpec,
  };

  async function draw(name, colours) {
    const place = document.getElementById(`chart-${name}`);
    if (!place) return;
    // `ast`: expressions are interpreted, as the page allows no code made of strings.
    await vegaEmbed(place, specs[name](colours), {
      actions: false,
      ast: true,
      config: config(colours, place.clientWidth),
      defaultStyle: false,
      renderer: 'svg',
      tooltip: { disableDefaultStyle: true },
    });
    place.dataset.drawn = 'yes';
  }

  function drawAll() {
    const colours = palette();
    for (const name of Object.keys(specs)) {
      draw(name, colours).catch((error) => {
        console.error(name, error);
        const place = document.getElementById(`chart-${name}`);
        place.textContent = 'This chart could not be drawn; its numbers are below.';
      });
    }
  }

  drawAll();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
})();
