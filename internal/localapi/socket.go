package localapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	socketName = "control.sock"
	// maxSocketPath is the longest path of a socket in bytes. Linux takes
	// 107 and macOS 103; one bound for both makes scripts portable.
	maxSocketPath = 103
	// shutdownTime is how long requests may take to finish when Serve stops.
	// None takes long but a followed log, which ends at once.
	shutdownTime = 5 * time.Second
)

// SocketPath is the path of a data folder's socket. It fails if the path is too long for a
// socket.
func SocketPath(dataDir string) (string, error) {
	path := filepath.Join(dataDir, socketName)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path of the control socket, %s, is %d bytes long, and a socket's path may have %d: choose a folder with a shorter path with --data-dir",
			path, len(path), maxSocketPath)
	}
	return path, nil
}

// Listen makes the socket of a data folder, which must exist and should be locked: of two
// programs that listen at the same moment, one could lose its socket. It replaces a socket
// that nothing answers on, which a crash has left behind.
func Listen(dataDir string) (net.Listener, error) {
	path, err := SocketPath(dataDir)
	if err != nil {
		return nil, err
	}
	if err := removeStale(path, dataDir); err != nil {
		return nil, err
	}
	// On Linux the file takes its mode from the descriptor, so there is no
	// moment at which others may open it. Elsewhere there is a short one.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot make the control socket %s: %w: see to the rights of the folder, or choose another with --data-dir", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot protect the control socket %s: %w: choose a folder on another file system with --data-dir", path, err), listener.Close())
	}
	return listener, nil
}

func removeStale(path, dataDir string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look for a control socket: %w: see to the rights of the folder, or choose another with --data-dir", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is in the way of the control socket: remove it, or choose another folder with --data-dir", path)
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("a Windlass with the data folder %s runs already: stop that one, or choose another folder with --data-dir", dataDir)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot tell whether a Windlass answers on %s: %w: stop it and remove this file, or choose another folder with --data-dir", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the control socket that an earlier Windlass left: %w: remove it by hand", err)
	}
	return nil
}

// Serve serves handler on listener until ctx ends, then ends followed logs, lets
// other requests finish, and closes the listener, which removes the socket.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	requests, cancelRequests := context.WithCancel(context.Background())
	defer cancelRequests()
	server := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
	}
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		cancelRequests()
		limit, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
