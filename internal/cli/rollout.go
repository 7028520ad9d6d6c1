package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
)

// rollouter shows how changes of functions come into use, and goes back.
type rollouter struct{ *finder }

func (r *rollouter) rolloutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout COMMAND",
		Short: "Follow a change of a function, or undo it",
		Long: `Follow a change of a function until calls go to it, list the earlier revisions,
and go back to one.

Each spec.template of a function is a revision. Calls go to a new one when an
instance of it has started; until then they go where they went before.`,
		Args: cobra.ArbitraryArgs,
		RunE: chooseCommand("windlass rollout status, history or undo"),
	}
	cmd.AddCommand(r.statusCommand(), r.historyCommand(), r.undoCommand())
	return cmd
}

func (r *rollouter) statusCommand() *cobra.Command {
	var watch bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "status NAME [--watch=false] [--timeout TIME]",
		Short: "Show the progress of a change of a function",
		Long: `Show the progress of the last change of a function, until calls go to it (exit
code 0) or it has failed (exit code 3).`,
		Example: `  windlass rollout status hello
  windlass rollout status hello --watch=false`,
		Args:              oneName,
		ValidArgsFunction: r.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usagef("--timeout=%s must be more than 0; leave it out to wait without end", limit)
			}
			t, fn, err := r.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if watch {
				return r.followWhileRead(cmd.Context(), t, fn, limit)
			}
			return r.printProgress(progressOf(fn))
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", true, "keep watching until it is done")
	cmd.Flags().DurationVar(&limit, "timeout", 0, "give up after this `time` (default: never)")
	return cmd
}

// find finds the function that an argument names, and its Windlass.
func (r *rollouter) find(ctx context.Context, name string) (*target, *v1alpha1.Function, error) {
	key, err := r.key(name)
	if err != nil {
		return nil, nil, err
	}
	t, err := r.target(ctx)
	if err != nil {
		return nil, nil, err
	}
	key = t.key(key)
	fn, err := t.Get(ctx, key)
	if err != nil {
		return nil, nil, r.explainNotFound(ctx, t, key, err)
	}
	return t, fn, nil
}

// followWhileRead follows a rollout until it ends, or nobody reads its progress any more. That is an
// error here, since success says that calls go to the revision.
func (r *rollouter) followWhileRead(ctx context.Context, t *target, fn *v1alpha1.Function, limit time.Duration) error {
	ended := fmt.Errorf("nobody reads the progress of function %s any more, and it is not there yet: see windlass rollout status %s", fn.Key(), r.shortName(fn.Key()))
	_ = r.whileRead(func(ctx context.Context) error {
		err := r.followRollout(ctx, t, fn, limit)
		if ctx.Err() == nil {
			ended = err
		}
		return err
	})(ctx)
	return ended
}

// followRollout prints the progress of a rollout until it ends. Who tells it may be away for a moment.
func (r *rollouter) followRollout(ctx context.Context, t *target, fn *v1alpha1.Function, limit time.Duration) error {
	waits := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		waits, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	told, away := "", trouble{finder: r.finder}
	for {
		now := progressOf(fn)
		if now.finished() {
			return r.printProgress(now)
		}
		if text := headline(now.text); text != told {
			told = text
			fmt.Fprintln(r.Out, told)
		}
		select {
		case <-waits.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			return timeoutf("function %s is not there yet, after %s: %s\n%ssee windlass describe %s", fn.Key(), limit, told, away.ending(), r.shortName(fn.Key()))
		case <-time.After(lookAgain):
		}
		again, err := t.Get(waits, fn.Key())
		switch {
		case err == nil && again.UID != fn.UID, isNotFound(err):
			return fmt.Errorf("function %s was deleted while it was waited for", fn.Key())
		case err == nil:
			fn = again
			away.note(nil)
		case waits.Err() != nil:
		case mayPass(err):
			away.note(err)
		default:
			return err
		}
	}
}

// printProgress prints where a rollout is. A rollout that is stuck is an error.
func (r *rollouter) printProgress(now progress) error {
	if now.stalled {
		return fmt.Errorf("the change does not come into use: %s\n%s", now.text, now.remedy)
	}
	fmt.Fprintln(r.Out, now.text)
	return nil
}

func (r *rollouter) historyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "history NAME [-o table|json|yaml]",
		Short: "List the revisions of a function",
		Long: `List the kept revisions of a function, the oldest first. * marks the one of its
current template.

READY   whether an instance of it has started
WEIGHT  its share of the calls
TAGS    the tags whose calls go to it, whatever its weight
WHAT    what its instances run`,
		Args:              oneName,
		ValidArgsFunction: r.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "table", "json", "yaml"); err != nil {
				return err
			}
			t, fn, err := r.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			revisions, err := t.Revisions(cmd.Context(), fn)
			if err != nil {
				return err
			}
			if output != "table" {
				return r.printObject(&v1alpha1.FunctionRevisionList{
					TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFunctionRevision + "List"}, Items: revisions,
				}, output)
			}
			if len(revisions) == 0 {
				return errNoRevisions(fn)
			}
			r.table(r.Out, historyRows(fn, revisions, r.now()))
			return nil
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`format`: table, json or yaml")
	return cmd
}

func errNoRevisions(fn *v1alpha1.Function) error {
	return fmt.Errorf("function %s has no revision yet; see that the controller of Windlass runs", fn.Key())
}

// historyRows is the table of rollout history.
func historyRows(fn *v1alpha1.Function, revisions []v1alpha1.FunctionRevision, now time.Time) [][]cell {
	rows := [][]cell{cells("", "REVISION", "READY", "WEIGHT", "TAGS", "AGE", "WHAT", "REASON")}
	for i := range revisions {
		r := &revisions[i]
		mark, reason := "", ""
		if r.Name == fn.Status.LatestCreatedRevisionName {
			mark = "*"
		}
		ready := readyRevision(r)
		if ready.Status != metav1.ConditionTrue {
			reason = inOneLine(headline(ready.Reason + ": " + ready.Message))
		}
		rows = append(rows, []cell{
			{text: mark}, {text: r.Name, colour: nameColour(ready.Status)},
			{text: string(ready.Status), colour: statusColour(ready.Status)},
			{text: fmt.Sprintf("%d%%", weightOf(fn, r.Name))}, {text: orDash(strings.Join(tagsOf(fn, r.Name), ","))},
			{text: age(r.CreationTimestamp.Time, now)}, {text: programOf(&r.Spec.Template)}, {text: reason},
		})
	}
	return rows
}

// maxReason is how many characters of a reason the table has room for.
const maxReason = 150

// headline leaves of a failure with log lines its reason and the last of them, which says
// what is wrong. Those before differ from one attempt to the next.
func headline(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	reason, logged := strings.CutSuffix(lines[0], "; its last log lines:")
	if !logged || len(lines) == 1 {
		return text
	}
	return reason + ": " + strings.TrimSpace(lines[len(lines)-1])
}

// inOneLine is the beginning of a text that may have several lines.
func inOneLine(text string) string {
	words := []rune(strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ":"))
	if len(words) > maxReason {
		return string(words[:maxReason]) + "..."
	}
	return string(words)
}

// readyRevision is the condition Ready, unknown if it was never set.
func readyRevision(r *v1alpha1.FunctionRevision) metav1.Condition {
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown}
}

func (r *rollouter) undoCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "undo NAME [--to REVISION]",
		Short: "Go back to an earlier revision of a function",
		Long: `Restore the template of an earlier revision. Without --to, that is the last one
that had all calls. It has started before, so calls go to it at once. Everything
else, such as scaling, stays as it is; so do calls that spec.traffic sends to a
revision by its name.

The manifest that the function was deployed from does not change: correct it,
or the next deploy undoes this.`,
		Example: `  windlass rollout undo hello
  windlass rollout undo hello --to hello-00003`,
		Args:              oneName,
		ValidArgsFunction: r.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			t, fn, err := r.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r.noteContext(t)
			revisions, err := t.Revisions(cmd.Context(), fn)
			if err != nil {
				return err
			}
			revision, err := chosen(fn, revisions, to)
			if err != nil {
				return err
			}
			return r.undo(cmd.Context(), t, fn, revision)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "`revision` to go back to, by its name or number (default: the last one that had all calls)")
	_ = cmd.RegisterFlagCompletionFunc("to", r.completeRevisions) // It fails for unknown flags only.
	return cmd
}

// undo makes a function what a revision of it is.
func (r *rollouter) undo(ctx context.Context, t *target, fn *v1alpha1.Function, revision *v1alpha1.FunctionRevision) error {
	if revision.Name == fn.Status.LatestCreatedRevisionName {
		fmt.Fprintf(r.Out, "function %s is %s already\n", fn.Key(), revision.Name)
		return nil
	}
	again := func(fn *v1alpha1.Function) error {
		fn.Spec.Template = *revision.Spec.Template.DeepCopy()
		return nil
	}
	if _, kept := revision.Annotations[v1alpha1.AnnotationCodeStamp]; kept {
		preview, err := t.Change(ctx, fn.Key(), again, true)
		switch {
		case isReason(err, localapi.ReasonInvalid):
			return errors.Join(filesChanged(r.shortName(fn.Key()), revision), err)
		case err != nil:
			return r.explainNotFound(ctx, t, fn.Key(), err)
		case !revision.Is(preview.Function):
			return filesChanged(r.shortName(fn.Key()), revision)
		}
	}
	applied, err := t.Change(ctx, fn.Key(), again, false)
	if err != nil {
		return r.explainNotFound(ctx, t, fn.Key(), err)
	}
	fmt.Fprintf(r.Out, "function %s is %s again: %s\n", fn.Key(), revision.Name, programOf(&revision.Spec.Template))
	printChanges(r.Out, changesOf(applied), false)
	if pinned := pinnedElsewhere(fn.Spec.Traffic, revision.Name); len(pinned) > 0 {
		fmt.Fprintf(r.Err, "calls still go where spec.traffic says: %s; change that, too\n", strings.Join(pinned, ", "))
	}
	fmt.Fprintf(r.Err, "%s says how far it is; the manifest that it was deployed from still says otherwise: correct that before the next deploy\n",
		r.rewriteCommands("windlass rollout status "+r.shortName(fn.Key())))
	return nil
}

// pinnedElsewhere are the parts of the calls that stay with other revisions by their names.
func pinnedElsewhere(traffic []v1alpha1.TrafficTarget, revision string) []string {
	var parts []string
	for _, part := range traffic {
		if part.Weight > 0 && part.RevisionName != "" && part.RevisionName != revision {
			parts = append(parts, fmt.Sprintf("%d %% to %s", part.Weight, part.RevisionName))
		}
	}
	return parts
}

// filesChanged says that a revision cannot come back, because only its author has its code.
func filesChanged(name string, r *v1alpha1.FunctionRevision) error {
	where := "the program " + quoteWords(r.Spec.Template.Command)
	if code := r.Spec.Template.Code; code != nil && code.Path != "" {
		where = code.Path
	}
	return fmt.Errorf("%s cannot come back: the files of %s are not those that it was deployed from, and Windlass on this machine keeps no copy of them; restore them, for example with git checkout, and then deploy %s again",
		r.Name, where, name)
}

// chosen is the revision that a name or number means or, without either, the last one that
// had all calls before the present one.
func chosen(fn *v1alpha1.Function, revisions []v1alpha1.FunctionRevision, to string) (*v1alpha1.FunctionRevision, error) {
	if len(revisions) == 0 {
		return nil, errNoRevisions(fn)
	}
	if to == "" {
		if last := lastInUse(fn, revisions); last != nil {
			return last, nil
		}
		return nil, fmt.Errorf("no revision of function %s but the present one has started and had all calls; name one with --to: %s", fn.Key(), revisionNames(revisions))
	}
	number, err := strconv.ParseInt(to, 10, 64)
	for i := range revisions {
		if r := &revisions[i]; r.Name == to || err == nil && r.Spec.Number == number {
			return r, nil
		}
	}
	return nil, usagef("--to %s: function %s has no such revision; those that are kept are %s", to, fn.Key(), revisionNames(revisions))
}

// lastInUse is the proven revision beside the present one that had all calls last: that which has
// some now, or else that which lost them last. It is nil if there is none.
func lastInUse(fn *v1alpha1.Function, revisions []v1alpha1.FunctionRevision) *v1alpha1.FunctionRevision {
	var last *v1alpha1.FunctionRevision
	for i := range revisions {
		r := &revisions[i]
		if r.Name == fn.Status.LatestCreatedRevisionName || r.Status.FullTrafficTime.IsZero() || !r.Proven() {
			continue
		}
		if last == nil || byUse(fn, last, r) <= 0 {
			last = r
		}
	}
	return last
}

// byUse compares when two revisions had calls last.
func byUse(fn *v1alpha1.Function, a, b *v1alpha1.FunctionRevision) int {
	since := func(r *v1alpha1.FunctionRevision) time.Time {
		if at := r.InactiveSince(); at != nil {
			return at.Time
		}
		return time.Time{}
	}
	return cmp.Or(
		cmp.Compare(weightOf(fn, a.Name), weightOf(fn, b.Name)), since(a).Compare(since(b)), cmp.Compare(a.Spec.Number, b.Spec.Number))
}

func revisionNames(revisions []v1alpha1.FunctionRevision) string {
	names := make([]string, len(revisions))
	for i := range revisions {
		names[i] = revisions[i].Name
	}
	return strings.Join(names, ", ")
}

// completeRevisions offers the revisions of the function that was named.
func (r *rollouter) completeRevisions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	t, fn, err := r.find(ctx, args[0])
	if err != nil {
		return nil, none
	}
	revisions, err := t.Revisions(ctx, fn)
	if err != nil {
		return nil, none
	}
	var names []string
	for i := range revisions {
		if revisions[i].Name != fn.Status.LatestCreatedRevisionName {
			names = append(names, revisions[i].Name)
		}
	}
	return names, none
}

// progress is how far the last change of a function is.
type progress struct {
	text string
	// done says that it is in use, and stalled that waiting does not help.
	done, stalled bool
	// remedy is for one that is stalled.
	remedy string
}

func (p progress) finished() bool { return p.done || p.stalled }

// progressOf reads it from a function's conditions.
func progressOf(fn *v1alpha1.Function) progress {
	status, ready := &fn.Status, conditionOf(fn, v1alpha1.ConditionRevisionReady)
	stalled, reconciling := conditionOf(fn, v1alpha1.ConditionStalled), conditionOf(fn, v1alpha1.ConditionReconciling)
	switch {
	case status.ObservedGeneration < fn.Generation || status.LatestCreatedRevisionName == "":
		return progress{text: fmt.Sprintf("generation %d of function %s has not been taken up yet", fn.Generation, fn.Key())}
	case stalled.Status == metav1.ConditionTrue:
		return progress{stalled: true, text: reasonOf(stalled),
			remedy: fmt.Sprintf("%scorrect it and deploy it again, or go back with windlass rollout undo %s", stillServing(fn), fn.Key())}
	case reconciling.Status == metav1.ConditionTrue && ready.Status != metav1.ConditionFalse:
		return progress{text: printable(strings.TrimSpace(reconciling.Message))}
	case ready.Status != metav1.ConditionTrue:
		return progress{text: reasonOf(ready)}
	case ready.Reason == v1alpha1.ReasonNotVerified:
		return progress{done: true, text: status.LatestCreatedRevisionName + " is not verified, as rollout.verify is None; " + callsOf(fn)}
	}
	return progress{done: true, text: status.LatestCreatedRevisionName + " has started; " + callsOf(fn)}
}

// stillServing is a line about the calls, if the latest revision has none of them.
func stillServing(fn *v1alpha1.Function) string {
	if len(fn.Status.Traffic) == 0 || weightOf(fn, fn.Status.LatestCreatedRevisionName) > 0 {
		return ""
	}
	return callsOf(fn) + "\n"
}

// callsOf says where calls go.
func callsOf(fn *v1alpha1.Function) string {
	var parts []string
	for _, name := range served(fn) {
		weight, tags := weightOf(fn, name), tagsOf(fn, name)
		part := fmt.Sprintf("%d %% of the calls go to %s", weight, name)
		if weight == 100 {
			part = "all calls go to " + name
		}
		switch len(tags) {
		case 0:
		case 1:
			part += ", tag " + tags[0]
		default:
			part += ", tags " + strings.Join(tags, " and ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// revisionAndCalls is the latest revision, and where calls go if they do not all go there.
func revisionAndCalls(fn *v1alpha1.Function) string {
	latest := fn.Status.LatestCreatedRevisionName
	if calls := served(fn); len(calls) == 0 || len(calls) == 1 && calls[0] == latest {
		return latest
	}
	return latest + "; " + callsOf(fn)
}

// callsInShort is the number of the latest revision or, if not all calls go to it, those
// of all that have calls with their parts.
func callsInShort(fn *v1alpha1.Function) string {
	number := func(name string) string { return strings.TrimPrefix(name, fn.Name+"-") }
	latest, calls := fn.Status.LatestCreatedRevisionName, served(fn)
	if len(calls) == 0 || len(calls) == 1 && calls[0] == latest {
		return number(latest)
	}
	if !slices.Contains(calls, latest) {
		calls = append(calls, latest)
	}
	var parts []string
	for _, name := range calls {
		parts = append(parts, fmt.Sprintf("%s %d%%", number(name), weightOf(fn, name)))
	}
	return strings.Join(parts, ", ")
}

// served are the names of the revisions that calls go to, in the order of the parts.
func served(fn *v1alpha1.Function) (names []string) {
	for _, part := range fn.Status.Traffic {
		if !slices.Contains(names, part.RevisionName) {
			names = append(names, part.RevisionName)
		}
	}
	return names
}

// weightOf is the part of the calls that goes to a revision, in percent.
func weightOf(fn *v1alpha1.Function, revision string) (weight int32) {
	for _, part := range fn.Status.Traffic {
		if part.RevisionName == revision {
			weight += part.Weight
		}
	}
	return weight
}

// tagsOf are the tags by which calls reach a revision.
func tagsOf(fn *v1alpha1.Function, revision string) (tags []string) {
	for _, part := range fn.Status.Traffic {
		if part.RevisionName == revision && part.Tag != "" {
			tags = append(tags, part.Tag)
		}
	}
	return tags
}
