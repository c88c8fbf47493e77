// What stands where there is nothing to show yet: work under way, an empty page that says what to do, an error.
import type { ComponentChildren } from "preact";
import { Problem } from "../api";
import type { Loaded } from "./asking";

export function Progress({ label }: { label: string }) {
  return (
    <div class="progress" role="status">
      <span class="spinner" aria-hidden="true" /> {label}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="muted">{children}</div>}
    </div>
  );
}

export function Failure({ error, again }: { error: Error; again?: () => void }) {
  const title = error instanceof Problem ? error.title : "It failed";
  return (
    <div class="failure" role="alert">
      <strong>{title}</strong>
      <p>{error.message}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The value of what was asked for, or what stands in its place. */
export function Shown<T>({
  of,
  label,
  children,
}: {
  of: Loaded<T>;
  label: string;
  children: (value: T) => ComponentChildren;
}) {
  return (
    <>
      {of.error && <Failure error={of.error} again={of.again} />}
      {of.value !== null ? children(of.value) : of.isLoading && <Progress label={label} />}
    </>
  );
}
