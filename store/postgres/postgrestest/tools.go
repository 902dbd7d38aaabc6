package postgrestest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Dump returns what pg_dump makes of a database.
func (s *Server) Dump(database string) []byte {
	s.t.Helper()
	return s.tool(nil, "pg_dump", "-h", s.dir, "-U", "switchboard", "-d", database)
}

// Load runs a dump in an empty database.
func (s *Server) Load(database string, dump []byte) {
	s.t.Helper()
	s.tool(dump, "psql", "-h", s.dir, "-U", "switchboard", "-d", database, "-v", "ON_ERROR_STOP=1", "-q")
}

func (s *Server) tool(in []byte, name string, args ...string) []byte {
	s.t.Helper()
	cmd := s.command(name, args...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &complaints
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, complaints.String())
	}
	return out.Bytes()
}

const bouncerConfig = `[databases]
* = host=%[1]s port=5432
[pgbouncer]
unix_socket_dir = %[1]s
unix_socket_mode = 0777
listen_addr =
listen_port = 6432
auth_type = trust
auth_file = %[1]s/users
pool_mode = transaction
`

// Bouncer starts pgbouncer before the server, in transaction mode, and returns the
// connection string of a database through it; empty: it is not installed.
func (s *Server) Bouncer(database string) (dsn string) {
	s.t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		return ""
	}
	config := filepath.Join(s.dir, "pgbouncer.ini")
	for file, text := range map[string]string{
		config: fmt.Sprintf(bouncerConfig, s.dir), filepath.Join(s.dir, "users"): "\"switchboard\" \"\"\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // the other user reads it
			s.t.Fatal(err)
		}
	}
	cmd := s.command("postgres", config)
	cmd.Path = path
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	})
	return fmt.Sprintf("host=%s port=6432 user=switchboard dbname=%s sslmode=disable", s.dir, database)
}
