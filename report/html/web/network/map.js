// The map: everything, and what of it is seen.
const mapPen = map.getContext('2d');
const mapPicture = document.createElement('canvas');
let mapIsOld = true;
let mapScale = 1;
function paintMap() {
  const visible = { left: view.x, right: view.x + world.width * view.scale, top: view.y, bottom: view.y + world.height * view.scale };
  const { width, height } = room();
  const needed = !narrow.matches &&
    (visible.left < -30 || visible.top < -30 || visible.right > width + 30 || visible.bottom > height + 30);
  map.hidden = !needed;
  if (!needed) return;
  if (mapIsOld) drawMap();
  const { ratio } = size;
  mapPen.setTransform(1, 0, 0, 1, 0, 0);
  mapPen.clearRect(0, 0, map.width, map.height);
  mapPen.drawImage(mapPicture, 0, 0);
  mapPen.scale(ratio, ratio);
  mapPen.strokeStyle = colours.accent;
  mapPen.lineWidth = 2;
  mapPen.strokeRect(
    (-view.x / view.scale) * mapScale + 6, (-view.y / view.scale) * mapScale + 6,
    (width / view.scale) * mapScale, (height / view.scale) * mapScale);
}
function drawMap() {
  mapIsOld = false;
  mapScale = Math.min(220 / world.width, 170 / world.height);
  const width = Math.max(24, world.width * mapScale) + 12;
  const height = Math.max(24, world.height * mapScale) + 12;
  for (const each of [map, mapPicture]) {
    each.width = width * size.ratio;
    each.height = height * size.ratio;
  }
  map.style.width = `${width}px`;
  map.style.height = `${height}px`;
  const brush = mapPicture.getContext('2d');
  brush.scale(size.ratio, size.ratio);
  brush.translate(6, 6);
  for (const box of boxes) {
    brush.globalAlpha = focus && !focus.has(box.index) ? 0.2 : 1;
    brush.fillStyle = box.makes.length > 0 ? strongOf(box.makes[0]) : colours.hatch;
    brush.fillRect(box.left * mapScale, box.top * mapScale, Math.max(1, boxWidth * mapScale), Math.max(0.7, box.height * mapScale));
  }
}
function moveByMap(event) {
  const frame = map.getBoundingClientRect();
  const { width, height } = room();
  moved = true;
  cancelAnimationFrame(flight);
  view = {
    ...view,
    x: width / 2 - ((event.clientX - frame.left - 6) / mapScale) * view.scale,
    y: height / 2 - ((event.clientY - frame.top - 6) / mapScale) * view.scale,
  };
  draw();
}
map.addEventListener('pointerdown', (event) => {
  map.setPointerCapture(event.pointerId);
  moveByMap(event);
});
map.addEventListener('pointermove', (event) => {
  if (map.hasPointerCapture(event.pointerId)) moveByMap(event);
});
