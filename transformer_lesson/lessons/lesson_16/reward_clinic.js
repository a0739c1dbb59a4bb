// The clinic of rewards: a run of GRPO with one fault.

import { clinicCases, drawClinic } from "../../explorables/web/clinic_board.js";
import { frame } from "../../explorables/web/frame.js";

const REWARD_BOARD = {
  curve: "mean reward", top: 1.1, ticks: [0, 0.5, 1], labels: [0, 20, 40], every: 1,
  ends: (now, healthy) => `Of 100 unseen sentences it gets ${rightIn100(now)} right at the end, ` +
    `the healthy one ${rightIn100(healthy)}.` };

const rightIn100 = ({ evaluation }) => (100 * evaluation).toFixed(0);

export const RewardClinic = (view) => frame(view, {
  name: "The clinic of rewards",
  traits: ["case", "taken", "verdicts", "cases", "healthy", "probes", "missing"],
  controls: clinicCases,
  draw: (state, page) => drawClinic(state, page, REWARD_BOARD) });
