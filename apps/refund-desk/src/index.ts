export { createRefundAgent, type RefundAgentParts } from "./agent.ts";
export { createClerk } from "./clerk/clerk.ts";
export { completeRefund, type RefundOutcome } from "./complete-refund.ts";
export { formatMoney } from "./money.ts";
export {
  findRefundMismatch,
  judgeRefund,
  needsManager,
  type RefundMismatch,
  showOrder,
} from "./orders/judge-refund.ts";
export type { Order, OrderItem, OrderRefund, RefundPolicy } from "./orders/order.ts";
export { type OrdersDatabase, openOrders } from "./orders/orders-database.ts";
export { findOrder, quoteRefund, readOrder, readPolicy } from "./orders/read-order.ts";
export { recordNotification } from "./orders/record-notification.ts";
export { type RefundRecord, recordRefund } from "./orders/record-refund.ts";
export { listSeedOrders, SEED_POLICY, type SeedKind, type SeedOrder } from "./orders/seed-data.ts";
export { seedOrders } from "./orders/seed-orders.ts";
export { seedSandbox } from "./orders/seed-sandbox.ts";
export { PaymentError, type PaymentErrorClass } from "./payment-error.ts";
export {
  createPayments,
  type Payments,
  type PaymentsConfig,
  type ProviderRefund,
  type RefundOrder,
  type RequestLimits,
} from "./payments.ts";
export { type RunningSandbox, type SandboxOptions, startSandbox } from "./sandbox/server.ts";
export { type SetupDone, setUpRefundDesk } from "./setup.ts";
export { readSetupConfig, type SetupConfig } from "./setup-config.ts";
export { FindOrderInput, NotifyCustomerInput, QuoteRefundInput, SendRefundInput } from "./tool-inputs.ts";
export { FindOrderOutput, NotifyCustomerOutput, QuoteRefundOutput, SendRefundOutput } from "./tool-outputs.ts";
export { failureOf, type ToolResult } from "./tool-result.ts";
export { createIntakeAgent } from "./workflow/intake-agent.ts";
export { draftLetter } from "./workflow/letter.ts";
export { REFUND_CASE, RefundCaseInput, RefundCaseOutput } from "./workflow/refund-case.ts";
export { createWriterAgent } from "./workflow/writer-agent.ts";
