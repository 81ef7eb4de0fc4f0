import type { EventType, OperatorChoice } from "./event.ts";
import type { Status } from "./status.ts";

/** Why an event is refused. The rule is stored with the refusal and told to whoever raised the event. */
export type Rule =
  | "already_submitted"
  | "run_ended"
  | "not_owned"
  | "not_paused"
  | "effect_unsettled"
  | "effect_not_open"
  | "children_live"
  | "nothing_to_skip"
  | "choice_not_offered"
  | "not_yours_to_raise";

/** What happens to a run at an event, by name; `reduce.ts` says what each does. */
export type Move =
  | "run"
  | "look_up"
  | "rest_hold"
  | "rest_released"
  | "rest_unknown"
  | "rest_end"
  | "clear_owner"
  | "settle"
  | "settle_waiting"
  | "settle_owned"
  | "lose"
  | "forsake"
  | "recover"
  | "to_operator"
  | "look_ups_over"
  | "by_deadline"
  | "escalate"
  | "revoke"
  | "retry_due"
  | "if_completed"
  | "if_child"
  | "if_awaited_child"
  | "resume_anew"
  | "cancel_at_rest"
  | "cancel_working"
  | "pause_at_rest"
  | "mark_pause"
  | "unmark_pause"
  | "unmark_if_any"
  | "resume"
  | "retry"
  | "skip"
  | "abort"
  | "settle_by_person"
  | "retry_now"
  | "terminate";

/** One decided cell: `.` ignored (a duplicate or late), `=` recorded without a move, `!rule` refused, else a move. */
export type Cell = "." | "=" | `!${Rule}` | Move;

type Row = Readonly<Record<Status, Cell>>;

/** The cells of one event, by column; the three holds that somebody outside completes are alike, and so are the three ends. */
function row([queued, running, waiting, operator, retrying, unknown, paused, lost, cancelling, ended]: Columns): Row {
  return {
    queued,
    running,
    waiting_input: waiting,
    waiting_approval: waiting,
    waiting_dependency: waiting,
    waiting_operator: operator,
    retrying,
    outcome_unknown: unknown,
    paused,
    lost,
    cancelling,
    completed: ended,
    failed: ended,
    cancelled: ended,
  };
}

type Columns = readonly [Cell, Cell, Cell, Cell, Cell, Cell, Cell, Cell, Cell, Cell];

const NO: Cell = "!not_owned";
const END: Cell = "!run_ended";
const OPEN: Cell = "!effect_unsettled";
const SUB: Cell = "!already_submitted";
const NPAU: Cell = "!not_paused";

/** The total table status × event, with `CHOICES` for what an operator decides. Nothing else decides a status: neither SQL nor an app. */
// biome-ignore format: read it as a matrix
export const TABLE: Readonly<Record<Exclude<EventType, "OperatorDecided">, Row>> = {
  //                    queued            running           waiting           operator          retrying          unknown           paused            lost              cancelling       ended
  Submitted:       row([SUB,              SUB,              SUB,              SUB,              SUB,              SUB,              SUB,              SUB,              SUB,             SUB]),
  Claimed:         row(["run",            ".",              ".",              ".",              ".",              "look_up",        ".",              ".",              "look_up",       "."]),
  Held:            row([NO,               "rest_hold",      NO,               NO,               NO,               NO,               NO,               NO,               "rest_hold",     END]),
  Released:        row([NO,               "rest_released",  NO,               NO,               NO,               "rest_released",  NO,               NO,               "rest_released", END]),
  EffectUnknown:   row([NO,               "rest_unknown",   NO,               NO,               NO,               "rest_unknown",   NO,               NO,               "clear_owner",   END]),
  EffectSettled:   row(["settle",         "settle",         "settle",         "settle_waiting", "settle",         "settle_owned",   "settle",         "settle",         "settle_owned",  "="]),
  Ended:           row([NO,               "rest_end",       NO,               NO,               NO,               NO,               NO,               NO,               "rest_end",      END]),
  OwnerGone:       row([".",              "lose",           ".",              ".",              ".",              "forsake",        ".",              ".",              "forsake",       "."]),
  Recovered:       row([".",              ".",              ".",              ".",              ".",              ".",              ".",              "recover",        ".",             "."]),
  DeadlinePassed:  row(["to_operator",    ".",              "by_deadline",    "escalate",       ".",              "look_ups_over",  "escalate",       "to_operator",    "revoke",        "."]),
  RetryDue:        row([".",              ".",              ".",              ".",              "retry_due",      ".",              ".",              ".",              ".",             "."]),
  FactArrived:     row(["=",              "=",              "if_completed",   "if_awaited_child", "=",            "=",              "resume_anew",    "=",              "if_child",      END]),
  CancelRequested: row(["cancel_at_rest", "cancel_working", "cancel_at_rest", "cancel_at_rest", "cancel_at_rest", "cancel_working", "cancel_at_rest", "cancel_working", ".",             END]),
  PauseRequested:  row(["pause_at_rest",  "mark_pause",     "pause_at_rest",  "pause_at_rest",  "pause_at_rest",  OPEN,             ".",              OPEN,             OPEN,            END]),
  Resumed:         row([NPAU,             "unmark_pause",   NPAU,             "unmark_if_any",  NPAU,             "unmark_pause",   "resume",         "unmark_pause",   NPAU,            END]),
};

const NOT_OFFERED: Cell = "!choice_not_offered";
const CLOSED: Cell = "!effect_not_open";

/** What each of an operator's choices does, by status. */
// biome-ignore format: read it as a matrix
export const CHOICES: Readonly<Record<OperatorChoice, Row>> = {
  //                    queued       running      waiting      operator            retrying     unknown             paused       lost         cancelling          ended
  retry:           row([NOT_OFFERED, NOT_OFFERED, NOT_OFFERED, "retry",            NOT_OFFERED, NOT_OFFERED,        NOT_OFFERED, NOT_OFFERED, NOT_OFFERED,        END]),
  skip:            row([NOT_OFFERED, NOT_OFFERED, NOT_OFFERED, "skip",             NOT_OFFERED, NOT_OFFERED,        NOT_OFFERED, NOT_OFFERED, NOT_OFFERED,        END]),
  abort:           row([NOT_OFFERED, NOT_OFFERED, NOT_OFFERED, "abort",            NOT_OFFERED, NOT_OFFERED,        NOT_OFFERED, NOT_OFFERED, NOT_OFFERED,        END]),
  mark_done:       row([CLOSED,      NOT_OFFERED, CLOSED,      "settle_by_person", CLOSED,      "settle_by_person", CLOSED,      OPEN,        NOT_OFFERED,        END]),
  not_established: row([CLOSED,      NOT_OFFERED, CLOSED,      "settle_by_person", CLOSED,      "settle_by_person", CLOSED,      OPEN,        "settle_by_person", END]),
  retry_now:       row([NOT_OFFERED, NOT_OFFERED, NOT_OFFERED, NOT_OFFERED,        "retry_now", NOT_OFFERED,        NOT_OFFERED, NOT_OFFERED, NOT_OFFERED,        END]),
  terminate:       row([NOT_OFFERED, "terminate", "terminate", "terminate",        "terminate", "terminate",        "terminate", "terminate", "terminate",        END]),
};
