// The clinic: a training program with one fault.

import { clinicCases, drawClinic } from "../../explorables/web/clinic_board.js";
import { frame } from "../../explorables/web/frame.js";

const CLINIC_BOARD = {
  curve: "loss, nats", top: 3.6, ticks: [0, 1, 2, 3], labels: [0, 40, 80], every: 2,
  ends: (now, healthy) => {
    const [sick, right] = [now, healthy].map(({ losses }) => losses.at(-1).toFixed(2));
    return `Loss at the end: ${sick}, healthy ${right}. In the evaluation: ` +
      `${now.evaluation.toFixed(2)}, healthy ${healthy.evaluation.toFixed(2)}.`;
  } };

export const Clinic = (view) => frame(view, {
  name: "The clinic",
  traits: ["case", "taken", "verdicts", "cases", "healthy", "probes", "missing"],
  controls: clinicCases,
  draw: (state, page) => drawClinic(state, page, CLINIC_BOARD) });
