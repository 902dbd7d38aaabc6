// Package postgrestest runs PostgreSQL servers of their own for tests, in directories
// below /tmp that are removed after it, reached over a unix socket. Where PostgreSQL is
// not installed, the tests are skipped.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/switchboard-run/switchboard/internal/procfs"
)

// patience bounds the wait for a server that starts.
const patience = time.Minute

// T is the part of testing.TB that servers and proxies use: programs that are no tests
// have their own.
type T interface {
	Helper()
	Cleanup(f func())
	Failed() bool
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Skip(args ...any)
}

// Server is one PostgreSQL server.
type Server struct {
	t        T
	bin, dir string
	owner    *syscall.Credential // nil: this user
	settings []string

	mu      sync.Mutex
	process *exec.Cmd // nil: it does not run
	exited  chan struct{}
	output  bytes.Buffer
	made    int
}

// Start makes and starts a server with settings such as "max_connections=20".
func Start(t T, settings ...string) *Server {
	t.Helper()
	s := newServer(t, settings)
	initdb := s.command("initdb", "-D", s.data(), "-U", "switchboard", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("make the directory of PostgreSQL: %v\n%s", err, out)
	}
	s.Run()
	return s
}

// Standby makes and starts a standby of the server, which streams from it under a name
// that synchronous_standby_names may have.
func (s *Server) Standby(name string) *Server {
	s.t.Helper()
	standby := newServer(s.t, s.settings)
	from := fmt.Sprintf("host=%s user=switchboard application_name=%s", s.dir, name)
	backup := standby.command("pg_basebackup", "-d", from, "-D", standby.data(), "-R", "-X", "stream", "-c", "fast",
		"--no-sync")
	if out, err := backup.CombinedOutput(); err != nil {
		s.t.Fatalf("copy PostgreSQL for its standby: %v\n%s", err, out)
	}
	standby.Run()
	return standby
}

// Promote makes a standby the primary, and returns when it is.
func (s *Server) Promote() {
	s.t.Helper()
	s.Do("SELECT pg_promote(true, 60)")
}

func newServer(t T, settings []string) *Server {
	t.Helper()
	bin := binaries()
	if bin == "" {
		t.Skip("PostgreSQL is not installed: install Debian's package postgresql-15")
	}
	s := &Server{t: t, bin: bin, settings: settings, owner: unprivileged(t)}
	dir, err := os.MkdirTemp("/tmp", "sbpg") //nolint:usetesting // short, and open to the other user
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("PostgreSQL wrote:\n%s", s.output.String())
		}
		_ = os.RemoveAll(dir)
	})
	if s.owner != nil {
		if err := os.Chown(dir, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// binaries is the directory of the newest installed version; empty: there is none.
func binaries() string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("postgres"); err == nil && len(dirs) == 0 {
		dirs = append(dirs, path)
	}
	if len(dirs) == 0 {
		return ""
	}
	slices.Sort(dirs)
	return filepath.Dir(dirs[len(dirs)-1])
}

// unprivileged returns another user if this one is root, as which PostgreSQL does not
// run.
func unprivileged(t T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if errors.Join(err, err2) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Skip("PostgreSQL does not run as root, and there is no other user to run it as")
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.owner}
	return cmd
}

// Run starts the server, which does not run, and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "shared_buffers=16MB",
		"-c", "max_connections=40"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("postgres", args...)
	exited := make(chan struct{})
	s.mu.Lock()
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	err := cmd.Start()
	s.process, s.exited = cmd, exited
	s.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		c, err := pgconn.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			_ = c.Close(ctx)
			return
		}
		select {
		case <-exited:
			s.t.Fatalf("PostgreSQL ended: %s", s.output.String())
		case <-ctx.Done():
			s.t.Fatalf("PostgreSQL does not answer: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Restart stops the server, which ends all its connections, and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.end(syscall.SIGINT)
	s.Run()
}

// Kill ends the server at once.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

// Signal sends a signal to all processes of the server.
func (s *Server) Signal(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	for _, pid := range append(procfs.Children(s.process.Process.Pid), s.process.Process.Pid) {
		_ = syscall.Kill(pid, signal)
	}
}

func (s *Server) end(signal syscall.Signal) {
	s.mu.Lock()
	process, exited := s.process, s.exited
	s.process = nil
	s.mu.Unlock()
	if process != nil {
		_ = process.Process.Signal(signal)
		<-exited
	}
}

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// DSN is the connection string of a database.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("host=%s user=switchboard dbname=%s sslmode=disable", s.dir, database)
}

// Database makes an empty database and returns its connection string.
func (s *Server) Database() string {
	s.t.Helper()
	s.mu.Lock()
	s.made++
	name := fmt.Sprintf("db%d", s.made)
	s.mu.Unlock()
	s.Do("CREATE DATABASE " + name)
	return s.DSN(name)
}

// Do runs a statement as the superuser and returns its rows as text.
func (s *Server) Do(sql string) (rows []string) {
	s.t.Helper()
	return s.DoIn("postgres", sql)
}

// DoIn is Do in another database than postgres.
func (s *Server) DoIn(database, sql string) (rows []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.DSN(database))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	for _, r := range results {
		for _, row := range r.Rows {
			rows = append(rows, string(bytes.Join(row, []byte("|"))))
		}
	}
	return rows
}

// Name is the name of the database in a connection string.
func Name(dsn string) string {
	_, name, _ := strings.Cut(dsn, "dbname=")
	name, _, _ = strings.Cut(name, " ")
	return name
}
