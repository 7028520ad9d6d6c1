package kubeclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Containers of a function's pod.
const (
	functionContainer = "function"
	agentContainer    = "agent"
)

const (
	// lookAgain is how often Logs looks for new pods.
	lookAgain = time.Second
	// maxFollowed is how many logs are followed at a time. Each is a
	// connection of the API server's to a node.
	maxFollowed = 50
	// maxLine is the longest line in bytes that is printed as one.
	maxLine = 64 << 10
)

// LogRequest says which log to copy where.
type LogRequest struct {
	Key invocation.FunctionKey
	// Follow goes on with new lines and new pods until the context ends.
	Follow bool
	// Tail is how many existing lines are copied, the last ones of all instances together;
	// negative means all.
	Tail int
	// Since leaves out earlier lines, unless it is zero.
	Since time.Time
	// Timestamps puts its time before each line.
	Timestamps bool
	// Agent means the agent's log instead of the function's.
	Agent bool
	// Out gets the lines, each behind its instance's id, and Notes what is
	// said about them.
	Out, Notes io.Writer
}

// Logs copies the logs of a function's instances: existing lines in the order of time, and
// then, if requested, new lines until ctx ends or the function is deleted.
func (c *Client) Logs(ctx context.Context, request LogRequest) error {
	fn, err := c.Get(ctx, request.Key)
	if err != nil {
		return err
	}
	pods, err := c.podsOf(ctx, fn)
	if err != nil {
		return err
	}
	f := &follower{client: c, request: request, out: &lineWriter{w: request.Out, timestamps: request.Timestamps}, logs: map[types.UID]*podLog{},
		failed: make(chan error, 1), passedOver: map[types.UID]bool{}}
	if !request.Follow {
		return f.copyAll(ctx, pods)
	}
	if len(pods) == 0 {
		f.note("function %s has no instance; waiting for one, which a call starts\n", request.Key)
	}
	first := min(len(pods), maxFollowed)
	for i := range pods[first:] {
		f.passedOver[pods[first+i].UID] = true
	}
	if err := f.copyAll(ctx, pods[:first]); err != nil && !Is(err, ReasonNoPod) {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer f.running.Wait()
	defer cancel()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		f.followPods(ctx, pods)
		select {
		case <-ctx.Done():
			return nil
		case err := <-f.failed:
			return err
		case <-ticker.C:
		}
		if now, err := c.Get(ctx, request.Key); Is(err, ReasonNotFound) || err == nil && now.UID != fn.UID {
			f.note("function %s was deleted: its log ends here\n", request.Key)
			return nil
		}
		again, err := c.podsOf(ctx, fn)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			pods = again
		case !Is(err, ReasonUnreachable) && !Is(err, ReasonRefused):
			return err
		}
	}
}

// isNotYet says that the container has not started, or that its pod has just
// gone.
func isNotYet(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) }

// follower follows the logs of the pods that are there.
type follower struct {
	client  *Client
	request LogRequest
	out     *lineWriter
	running sync.WaitGroup
	logs    map[types.UID]*podLog
	tooMany bool
	// passedOver are pods that were there at the request, and too many.
	passedOver map[types.UID]bool
	// failed gets an error that trying again does not help against.
	failed chan error
	// noting is for request.Notes, which many write to.
	noting sync.Mutex
}

func (f *follower) note(format string, args ...any) {
	f.noting.Lock()
	defer f.noting.Unlock()
	fmt.Fprintf(f.request.Notes, format, args...)
}

// noteUnread says once about a log that it cannot be read.
func (f *follower) noteUnread(log *podLog, explained error) {
	if !log.noted {
		f.note("the log of instance %s on node %s cannot be read: %v\n", cidOf(log.pod), log.pod.Spec.NodeName, explained)
	}
	log.noted = true
}

// followPods starts to copy the logs of new pods, and drops pods that are gone.
func (f *follower) followPods(ctx context.Context, pods []corev1.Pod) {
	there := map[types.UID]bool{}
	for i := range pods {
		pod := &pods[i]
		there[pod.UID] = true
		log := f.logs[pod.UID]
		if log == nil {
			if len(f.logs) >= maxFollowed {
				f.noteTooMany()
				continue
			}
			log = &podLog{fresh: !f.passedOver[pod.UID]}
			f.logs[pod.UID] = log
		}
		if log.beginCopy(pod) {
			f.running.Go(func() { f.followLog(ctx, log) })
		}
	}
	for uid := range f.logs {
		if !there[uid] {
			delete(f.logs, uid)
		}
	}
}

func (f *follower) noteTooMany() {
	if !f.tooMany {
		f.note("function %s has more instances than the %d whose logs are followed\n", f.request.Key, maxFollowed)
	}
	f.tooMany = true
}

func (f *follower) followLog(ctx context.Context, log *podLog) {
	err := log.copy(ctx, f.client.logs, f.request, f.out)
	if err != nil && !isNotYet(err) && ctx.Err() == nil {
		f.judge(log, err)
	}
	log.endCopy(err == nil)
}

// judge ends Logs if trying again does not help, and says once what may pass.
func (f *follower) judge(log *podLog, err error) {
	var lost unwritten
	if errors.As(err, &lost) {
		f.fail(lost.error)
		return
	}
	explained := f.client.explain(f.request.Key, err)
	if Is(explained, ReasonForbidden) {
		f.fail(explained)
		return
	}
	f.noteUnread(log, explained)
}

func (f *follower) fail(err error) {
	select {
	case f.failed <- err:
	default:
		// Another log was first.
	}
}

// unwritten is why lines that were read could not be written.
type unwritten struct{ error }

// podLog is how far a pod's log was copied.
type podLog struct {
	mu  sync.Mutex
	pod *corev1.Pod
	// busy means that it is being copied, and whole that nothing can follow. Fresh
	// means that it began after the request: all of its lines are wanted, and Tail is
	// about those that were there.
	busy, whole, fresh bool
	// noted means that it was said that it cannot be read.
	noted bool
	// last is the time of the last line, zero if there was none.
	last time.Time
}

// beginCopy reports whether to copy the log; if so, endCopy must follow.
func (l *podLog) beginCopy(pod *corev1.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.whole {
		return false
	}
	l.pod, l.busy = pod, true
	return true
}

// endCopy notes whether the log was read to its end. That of a container that had
// ended before has all its lines then.
func (l *podLog) endCopy(read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	l.whole = read && (l.pod.Status.Phase == corev1.PodSucceeded || l.pod.Status.Phase == corev1.PodFailed)
}

// options ask for the lines behind the last one.
func (l *podLog) options(request LogRequest) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: functionContainer, Timestamps: true}
	if request.Agent {
		options.Container = agentContainer
	}
	switch {
	case !l.last.IsZero():
		// It counts in seconds, so some lines come again.
		since := metav1.NewTime(l.last.Truncate(time.Second))
		options.SinceTime = &since
	case request.Tail >= 0 && !l.fresh:
		lines := int64(request.Tail)
		options.TailLines = &lines
	}
	if options.SinceTime == nil && !request.Since.IsZero() {
		since := metav1.NewTime(request.Since.Truncate(time.Second))
		options.SinceTime = &since
	}
	return options
}

// copy copies the lines behind the last one.
func (l *podLog) copy(ctx context.Context, logs LogOpener, request LogRequest, out *lineWriter) error {
	options := l.options(request)
	options.Follow = request.Follow
	source, err := logs.OpenLog(ctx, l.pod.Namespace, l.pod.Name, options)
	if err != nil {
		return err
	}
	defer source.Close()
	lines, resumed := bufio.NewReaderSize(source, maxLine), l.last
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if writeErr := l.print(out, line, later(resumed, request.Since.Add(-1))); writeErr != nil {
				return unwritten{writeErr}
			}
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		default:
			return err
		}
	}
}

// print prints a line, which begins with its time, unless it is not after
// resumed: it came before.
func (l *podLog) print(out *lineWriter, line []byte, resumed time.Time) error {
	stamp, text, ok := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	switch {
	case !ok || err != nil:
		// The rest of a long line has no time.
		text = line
	case !at.After(resumed):
		return nil
	default:
		l.last = at
	}
	return out.write(cidOf(l.pod), l.last, text)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lineWriter writes whole lines of many.
type lineWriter struct {
	timestamps bool
	mu         sync.Mutex
	w          io.Writer
}

// stampFormat is how times are written before lines: in UTC, to the millisecond.
const stampFormat = "2006-01-02T15:04:05.000Z"

func (l *lineWriter) write(cid string, at time.Time, text []byte) error {
	line := fmt.Sprintf("%s | %s\n", cid, bytes.TrimRight(text, "\n"))
	if l.timestamps {
		line = at.UTC().Format(stampFormat) + " " + line
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.w, line)
	return err
}
