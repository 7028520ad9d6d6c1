package localapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// NotRunningError says that no Windlass answers on the socket of a data folder.
type NotRunningError struct {
	DataDir string
	Err     error
}

// Error says what to do about it.
func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no Windlass runs with the data folder %s: start one with windlass up, or name its folder with --data-dir", e.DataDir)
}

// Unwrap is why the connection failed.
func (e *NotRunningError) Unwrap() error { return e.Err }

// Client calls the API of the Windlass of one data folder. What the API answers
// as an error is an *Error. It may be used by many goroutines at a time, and
// holds nothing that needs closing.
type Client struct {
	dataDir string
	http    http.Client
}

// NewClient makes a Client. It connects to nothing yet.
func NewClient(dataDir string) *Client {
	c := &Client{dataDir: dataDir}
	c.http.Transport = &http.Transport{
		// No connection outlives its request, so none must be closed.
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
	}
	return c
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	path, err := SocketPath(c.dataDir)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil && ctx.Err() == nil {
		err = explainDial(c.dataDir, err)
	}
	return conn, err
}

// explainDial adds to an error of the connection what it means and what to do about it.
func explainDial(dataDir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return &NotRunningError{DataDir: dataDir, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not connect to the data folder %s, so it is not known whether a Windlass runs there: %w: run this command as the user of that folder, or name your own with --data-dir", dataDir, err)
	}
	return fmt.Errorf("cannot connect to the Windlass with the data folder %s: %w: try again, restart it with windlass up, or name another folder with --data-dir", dataDir, err)
}

// Probe says why no Windlass can be used with the data folder, with a *NotRunningError if none
// runs; nil if one runs.
func (c *Client) Probe(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Info describes the running Windlass.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.call(ctx, http.MethodGet, "/info", nil, &info)
	return info, err
}

// List returns the functions of a namespace, or all if it is empty, in the order
// of their keys.
func (c *Client) List(ctx context.Context, namespace string) (*v1alpha1.FunctionList, error) {
	list := &v1alpha1.FunctionList{}
	return list, c.call(ctx, http.MethodGet, listPath(namespace), nil, list)
}

// Get returns a function with its status.
func (c *Client) Get(ctx context.Context, key invocation.FunctionKey) (*v1alpha1.Function, error) {
	fn := &v1alpha1.Function{}
	return fn, c.call(ctx, http.MethodGet, functionPath(key), nil, fn)
}

// Revisions returns the revisions of a function, oldest first.
func (c *Client) Revisions(ctx context.Context, fn *v1alpha1.Function) ([]v1alpha1.FunctionRevision, error) {
	list := &v1alpha1.FunctionRevisionList{}
	err := c.call(ctx, http.MethodGet, revisionsPath(fn), nil, list)
	return list.Items, err
}

// Decisions returns the last decisions on a function.
func (c *Client) Decisions(ctx context.Context, key invocation.FunctionKey) (decisionlog.Report, error) {
	var account decisionlog.Report
	err := c.call(ctx, http.MethodGet, functionPath(key)+"/decisions", nil, &account)
	return account, err
}

// Latest returns the last decision on each function that had one recently.
func (c *Client) Latest(ctx context.Context) (decisionlog.LatestReport, error) {
	var latest decisionlog.LatestReport
	err := c.call(ctx, http.MethodGet, latestPath, nil, &latest)
	return latest, err
}

// Apply makes the function exist as it is given. Its namespace and name must be
// set.
func (c *Client) Apply(ctx context.Context, fn *v1alpha1.Function) (Applied, error) {
	return c.put(ctx, fn, "")
}

// Replace is Apply for a function that was made from base, which Get returned. It fails with
// ReasonConflict if the function has changed since.
func (c *Client) Replace(ctx context.Context, base, fn *v1alpha1.Function) (Applied, error) {
	return c.put(ctx, fn, "?"+url.Values{basedOn: {string(file.VersionOf(base))}}.Encode())
}

// Preview is what Apply would do now. It changes nothing.
func (c *Client) Preview(ctx context.Context, fn *v1alpha1.Function) (Applied, error) {
	return c.put(ctx, fn, "?"+dryRun)
}

func (c *Client) put(ctx context.Context, fn *v1alpha1.Function, query string) (Applied, error) {
	var applied Applied
	body, err := v1alpha1.Encode(fn)
	if err != nil {
		return applied, err
	}
	err = c.call(ctx, http.MethodPut, functionPath(fn.Key())+query, body, &applied)
	return applied, err
}

// Delete removes a function.
func (c *Client) Delete(ctx context.Context, key invocation.FunctionKey) error {
	return c.call(ctx, http.MethodDelete, functionPath(key), nil, nil)
}

// LookUpCall returns the log of one invocation.
func (c *Client) LookUpCall(ctx context.Context, id invocation.ID) (invocation.Findings, error) {
	var story invocation.Findings
	err := c.call(ctx, http.MethodGet, invocations+"/"+id.String(), nil, &story)
	return story, err
}

// Log copies a function's log to w. A followed log ends when ctx does, Windlass stops, or the
// function is deleted.
func (c *Client) Log(ctx context.Context, w io.Writer, key invocation.FunctionKey, options LogOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(answerTime, func() { cancel(context.DeadlineExceeded) })
	defer patience.Stop()
	response, err := c.do(ctx, http.MethodGet, functionPath(key)+"/log?"+options.query().Encode(), nil)
	if err != nil {
		return c.explainSilence(cmp.Or(context.Cause(ctx), err))
	}
	defer response.Body.Close()
	patience.Stop()
	lines := io.Reader(response.Body)
	if !options.Follow {
		lines = &impatientReader{lines, patience}
	}
	if _, err := io.Copy(w, lines); err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
			return c.explainSilence(cause)
		}
		return fmt.Errorf("the log was cut off: %w: ask for it again", err)
	}
	return nil
}

// impatientReader gives answerTime to each read, but none to those who take what was read.
type impatientReader struct {
	io.Reader
	patience *time.Timer
}

func (r *impatientReader) Read(p []byte) (int, error) {
	r.patience.Reset(answerTime)
	defer r.patience.Stop()
	return r.Reader.Read(p)
}

// answerTime is how long Windlass has for an answer: it has all that it is asked for in its
// memory, or writes one file. One that was stopped takes connections and answers nothing.
const answerTime = 30 * time.Second

// call sends a request and reads the answer into result, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, body []byte, result any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return c.explainSilence(c.exchange(ctx, method, path, body, result))
}

// explainSilence says of a deadline why it may have passed.
func (c *Client) explainSilence(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the Windlass with the data folder %s does not answer: %w: continue it with fg if it was stopped with Ctrl-Z, or else restart it with windlass up", c.dataDir, err)
	}
	return err
}

func (c *Client) exchange(ctx context.Context, method, path string, body []byte, result any) error {
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if result == nil {
		return nil
	}
	err = json.NewDecoder(response.Body).Decode(result)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return err
	case err != nil:
		return fmt.Errorf("the answer of the Windlass with the data folder %s cannot be read: %w: check that it and this command have the same version", c.dataDir, err)
	}
	return nil
}

// do sends a request and returns the answer unless that is an error. The host's name is never
// resolved.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://windlass"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer response.Body.Close()
	problem := &Error{}
	if err := json.NewDecoder(response.Body).Decode(problem); err != nil || problem.Message == "" {
		return nil, fmt.Errorf("the Windlass with the data folder %s answered %s without a reason: check that it and this command have the same version", c.dataDir, response.Status)
	}
	return nil, problem
}

// withoutURL takes off the made-up URL, which would only puzzle.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		err = urlError.Err
	}
	var notRunning *NotRunningError
	if errors.As(err, &notRunning) {
		return notRunning
	}
	return err
}
