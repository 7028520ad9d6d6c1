package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// A puppet is this test binary in the role of a function, an agent, or
// something else that a test starts. It connects to the stage, a socket of the
// test, says who it is, and does what it is told there. Its end, however it
// comes, closes the connection, so that a test can wait for it.

const (
	// roleEnv holds the role of a puppet and serverEnv its stage. Agents have
	// neither: their environment is that of agents, and their token the stage.
	roleEnv   = "PUPPET_ROLE"
	serverEnv = "PUPPET_STAGE"

	roleFunction   = "function"
	roleAgent      = "agent"
	roleGrandchild = "grandchild"
	roleParent     = "parent"

	// testTimeout is when a test gives up waiting for an event that must come.
	testTimeout = time.Minute
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); {
	case os.Getenv("WINDLASS_TOKEN") != "":
		runAgent(os.Getenv("WINDLASS_TOKEN"))
	case role == roleParent:
		runParent(os.Getenv(serverEnv))
	case role != "":
		runCommands(role, os.Getenv(serverEnv))
	default:
		goleak.VerifyTestMain(m)
	}
}

// runAgent leaves when it is asked to, as an agent does, or when it hears how the
// function ended, which it prints.
func runAgent(stage string) {
	go func() {
		if how, _ := io.ReadAll(os.NewFile(agentenv.EndFD, "end")); len(how) > 0 {
			fmt.Fprintf(os.Stdout, "%s\n", how)
			os.Exit(0)
		}
	}()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		os.Exit(0)
	}()
	runCommands(roleAgent, stage)
}

// runCommands obeys the stage until it is told to end or the stage is gone.
func runCommands(role, stage string) {
	conn, err := net.Dial("unix", stage)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(100)
	}
	// A puppet is known by its instance, which its own environment names.
	fmt.Fprintf(conn, "%s %d %s\n", role, os.Getpid(), os.Getenv("WINDLASS_INSTANCE"))
	orders := bufio.NewScanner(conn)
	for orders.Scan() {
		runCommand(conn, orders.Text(), stage)
	}
	os.Exit(101)
}

// runCommand carries out one order and answers it with one line.
func runCommand(conn net.Conn, order, stage string) {
	verb, arg, _ := strings.Cut(order, " ")
	answer := "done"
	switch verb {
	case "exit":
		code, _ := strconv.Atoi(arg)
		os.Exit(code)
	case "print":
		fmt.Fprintln(os.Stdout, arg)
	case "getenv":
		answer = os.Getenv(arg)
	case "cores":
		answer = strconv.Itoa(runtime.NumCPU()) // as they were when it started
	case "getwd":
		answer, _ = os.Getwd()
	case "serve-inherited":
		answer = serveInherited(arg)
	case "call-runtime-api":
		answer = readAll(os.Getenv("AWS_LAMBDA_RUNTIME_API"))
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
	case "spawn":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleEnv+"="+roleGrandchild)
		if err := child.Start(); err != nil {
			answer = err.Error()
		}
	default:
		answer = "no such order: " + order
	}
	fmt.Fprintln(conn, answer)
}

// serveInherited says words to the first who calls at the inherited listener.
func serveInherited(words string) string {
	l, err := net.FileListener(os.NewFile(agentenv.ListenerFD, "listener"))
	if err != nil {
		return err.Error()
	}
	conn, err := l.Accept()
	if err != nil {
		return err.Error()
	}
	fmt.Fprint(conn, words)
	conn.Close()
	return "done"
}

// readAll is all that is said at addr.
func readAll(addr string) string {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	words, err := io.ReadAll(conn)
	if err != nil {
		return err.Error()
	}
	return string(words)
}

// runParent is a Windlass with one instance.
func runParent(stage string) {
	r, err := New(Config{DataDir: os.Getenv("PUPPET_DATA"), AgentPath: os.Args[0], SchedulerAddr: "127.0.0.1:1"},
		Deps{Launcher: noLauncher, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(100)
	}
	go r.Run(context.Background())
	r.Start(specFor(stage, "c-1"))
	runCommands(roleParent, stage)
}

// programServer is where puppets connect.
type programServer struct {
	t        *testing.T
	listener *net.UnixListener
	path     string
	// waiting are puppets that connected and were not yet asked for.
	waiting []*testProgram
}

// testProgram is one that has connected.
type testProgram struct {
	t    *testing.T
	role string
	pid  int
	cid  string
	conn *net.UnixConn
	read *bufio.Reader
}

func newProgramServer(t *testing.T) *programServer {
	t.Helper()
	// Test names are too long for the path of a socket.
	dir, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &programServer{t: t, listener: l, path: path}
}

// await returns the puppet of that role and instance once it has connected.
func (s *programServer) await(role, cid string) *testProgram {
	s.t.Helper()
	for {
		for i, p := range s.waiting {
			if p.role == role && p.cid == cid {
				s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
				return p
			}
		}
		s.waiting = append(s.waiting, s.accept())
	}
}

func (s *programServer) accept() *testProgram {
	s.t.Helper()
	s.listener.SetDeadline(time.Now().Add(testTimeout))
	conn, err := s.listener.AcceptUnix()
	if err != nil {
		s.t.Fatalf("no puppet came: %v", err)
	}
	s.t.Cleanup(func() { conn.Close() })
	p := &testProgram{t: s.t, conn: conn, read: bufio.NewReader(conn)}
	p.role, p.pid, p.cid = parseHello(s.t, p.line())
	return p
}

func parseHello(t *testing.T, line string) (role string, pid int, cid string) {
	t.Helper()
	words := strings.Split(line, " ")
	if len(words) != 3 {
		t.Fatalf("introduction %q", line)
	}
	pid, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatalf("introduction %q: %v", line, err)
	}
	return words[0], pid, words[2]
}

func (p *testProgram) line() string {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(testTimeout))
	line, err := p.read.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the %s %s does not answer: %v", p.role, p.cid, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// send sends an order without waiting.
func (p *testProgram) send(order string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.conn, order); err != nil {
		p.t.Fatalf("the %s %s is gone: %v", p.role, p.cid, err)
	}
}

// request sends an order and returns its answer.
func (p *testProgram) request(order string) string {
	p.t.Helper()
	p.send(order)
	return p.line()
}

// awaitEnd returns when the puppet's process is gone.
func (p *testProgram) awaitEnd() {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(testTimeout))
	_, err := io.Copy(io.Discard, p.read)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("the %s %s with process id %d still lives", p.role, p.cid, p.pid)
	}
}

func (p *testProgram) kill(signal syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.pid, signal); err != nil {
		p.t.Fatal(err)
	}
}
