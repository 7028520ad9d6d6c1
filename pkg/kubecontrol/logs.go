package kubecontrol

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

	"github.com/windlass-dev/windlass/pkg/invoke"
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
	Key invoke.FunctionKey
	// Follow goes on with new lines and new pods until the context ends.
	Follow bool
	// Tail is how many of the last lines of each instance are copied; a
	// negative one means all.
	Tail int
	// Agent means the agent's log instead of the function's.
	Agent bool
	// Out gets the lines, each behind its instance's id, and Notes what is
	// said about them.
	Out, Notes io.Writer
}

// Logs copies what the instances of a function write.
func (c *Client) Logs(ctx context.Context, request LogRequest) error {
	fn, err := c.Get(ctx, request.Key)
	if err != nil {
		return err
	}
	pods, err := c.podsOf(ctx, fn)
	if err != nil {
		return err
	}
	if !request.Follow {
		return c.copyLogs(ctx, request, pods)
	}
	if len(pods) == 0 {
		fmt.Fprintf(request.Notes, "function %s has no instance; waiting for one, which a call starts\n", request.Key)
	}
	f := &follower{client: c, request: request, out: &lineWriter{w: request.Out}, logs: map[types.UID]*podLog{}}
	defer f.running.Wait()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		f.look(ctx, pods)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
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

// copyLogs copies the logs that are there, one pod after the other.
func (c *Client) copyLogs(ctx context.Context, request LogRequest, pods []corev1.Pod) error {
	out := &lineWriter{w: request.Out}
	var waiting error
	copied := 0
	for i := range pods {
		log := &podLog{pod: &pods[i]}
		err := log.copy(ctx, c.pods.logs, request, out)
		switch {
		case isNotYet(err):
			waiting = err
		case err != nil:
			return c.explain(request.Key, err)
		default:
			copied++
		}
	}
	switch {
	case copied > 0:
		return nil
	case waiting != nil:
		return &Error{Reason: ReasonNoPod, Err: waiting, Message: fmt.Sprintf(
			"no instance of function %s has started yet, as far as the cluster knows, which can be a second late: "+
				"see windlass describe %s for the reason, or wait with --follow", request.Key, request.Key)}
	}
	return &Error{Reason: ReasonNoPod, Message: fmt.Sprintf(
		"function %s has no instance, and the logs of those that ended went with their pods: call it first, or wait for one with --follow", request.Key)}
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
	crowded bool
}

// look starts to copy what is not being copied, and forgets pods that are gone.
func (f *follower) look(ctx context.Context, pods []corev1.Pod) {
	there := map[types.UID]bool{}
	for i := range pods {
		pod := &pods[i]
		there[pod.UID] = true
		log := f.logs[pod.UID]
		if log == nil {
			if len(f.logs) >= maxFollowed {
				f.tellCrowded()
				continue
			}
			log = &podLog{}
			f.logs[pod.UID] = log
		}
		if log.begin(pod) {
			f.running.Go(func() { f.follow(ctx, log) })
		}
	}
	for uid := range f.logs {
		if !there[uid] {
			delete(f.logs, uid)
		}
	}
}

func (f *follower) tellCrowded() {
	if !f.crowded {
		fmt.Fprintf(f.request.Notes, "function %s has more instances than the %d whose logs are followed\n", f.request.Key, maxFollowed)
	}
	f.crowded = true
}

func (f *follower) follow(ctx context.Context, log *podLog) {
	err := log.copy(ctx, f.client.pods.logs, f.request, f.out)
	log.end(err == nil)
}

// podLog is how far a pod's log was copied.
type podLog struct {
	mu  sync.Mutex
	pod *corev1.Pod
	// busy means that it is being copied, and whole that nothing can follow.
	busy, whole bool
	// last is the time of the last line, zero if there was none.
	last time.Time
}

// begin says whether to copy the log, which end then ends.
func (l *podLog) begin(pod *corev1.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.whole {
		return false
	}
	l.pod, l.busy = pod, true
	return true
}

// end notes whether the log was read to its end. That of a container that had
// ended before has all its lines then.
func (l *podLog) end(read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	l.whole = read && (l.pod.Status.Phase == corev1.PodSucceeded || l.pod.Status.Phase == corev1.PodFailed)
}

// copy copies the lines behind the last one.
func (l *podLog) copy(ctx context.Context, logs LogOpener, request LogRequest, out *lineWriter) error {
	options := &corev1.PodLogOptions{Container: functionContainer, Follow: request.Follow, Timestamps: true}
	if request.Agent {
		options.Container = agentContainer
	}
	switch {
	case !l.last.IsZero():
		// It counts in seconds, so some lines come again.
		since := metav1.NewTime(l.last.Truncate(time.Second))
		options.SinceTime = &since
	case request.Tail >= 0:
		lines := int64(request.Tail)
		options.TailLines = &lines
	}
	source, err := logs.OpenLog(ctx, l.pod.Namespace, l.pod.Name, options)
	if err != nil {
		return err
	}
	defer source.Close()
	lines, resumed := bufio.NewReaderSize(source, maxLine), l.last
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if writeErr := l.print(out, line, resumed); writeErr != nil {
				return writeErr
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
	case !resumed.IsZero() && !at.After(resumed):
		return nil
	default:
		l.last = at
	}
	return out.write(cidOf(l.pod), text)
}

// lineWriter writes whole lines of many.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) write(cid string, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.w, "%s %s\n", cid, bytes.TrimRight(text, "\n"))
	return err
}
