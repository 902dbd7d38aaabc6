package mcpfile

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract/near"
)

// Options say what the file refers to.
type Options struct {
	File string // its name, for problems
	// Lookup returns a variable of the environment or of secrets.env.
	Lookup func(name string) (string, bool)
	Home   string // of the user: ~ and ${userHome}
}

// Fields of other programs that mean nothing here.
var (
	ignoredFields = []string{
		"autoApprove", "alwaysAllow", "description", "name", "icon", "icons", "gallery", "version", "dev", "timeout",
		"initTimeout", "startup_timeout_sec", "tool_timeout_sec", "trust", "note", "notes", "comment", "metadata", "tags",
		"_comment", "$schema", "sandboxEnabled", "sandbox",
	}
	knownFields = []string{
		"type", "transport", "command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "oauth",
		"disabled", "enabled", "switchboard",
	}
)

const (
	maxID      = 32
	maxServers = 100
)

// reader reads the servers of a file.
type reader struct {
	parser
	o        Options
	problems []Problem
	lenient  bool // in a disabled server: variables need not be set
}

// Read reads the servers of the file, disabled ones too. The error is Problems.
func Read(data []byte, o Options) ([]Server, error) {
	r := &reader{o: o, parser: parser{data: plain(data)}}
	root, broken := parse(data)
	if broken != nil {
		return nil, Problems{o.File, []Problem{*broken}}
	}
	all := r.file(root)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, Problems{o.File, r.problems}
	}
	return all, nil
}

func (r *reader) fail(at int, format string, args ...any) {
	r.problems = append(r.problems, *r.problem(at, fmt.Sprintf(format, args...)))
}

func (r *reader) file(root *node) (all []Server) {
	if root.kind != "an object" {
		r.fail(root.at, "the file must be an object with \"mcpServers\", not %s", root.kind)
		return nil
	}
	found := false
	seen := map[string]string{}
	for _, m := range root.object {
		if m.name != "mcpServers" && m.name != "servers" {
			continue // other settings of the program that the file is from
		}
		found = true
		if m.value.kind != "an object" {
			r.fail(m.value.at, "%s must be an object of servers by their names, not %s", m.name, m.value.kind)
			continue
		}
		for _, entry := range m.value.object {
			s := r.server(entry)
			switch other, twice := seen[s.ID]; {
			case twice && other == s.Name:
				r.fail(entry.at, "two servers have the name %q: rename one", s.Name)
			case twice:
				r.fail(entry.at, "the names %q and %q are the same in the names of tools (%s): rename one", other, s.Name, s.ID)
			}
			seen[s.ID] = s.Name
			all = append(all, s)
		}
	}
	if !found {
		r.fail(root.at, "the file has neither \"mcpServers\" nor \"servers\"")
	}
	if len(all) > maxServers {
		r.fail(root.at, "the file has %d servers, and %d are allowed", len(all), maxServers)
	}
	return all
}

// ID returns the id of a server with a name.
func ID(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	id := strings.Trim(b.String(), "_")
	if id != "" && id[0] <= '9' {
		id = "s" + id
	}
	return id
}

func (r *reader) server(entry member) Server {
	s := Server{Name: entry.name, ID: ID(entry.name)}
	switch {
	case s.ID == "":
		r.fail(entry.at, "the name %q has no letter: rename the server", entry.name)
	case len(s.ID) > maxID:
		r.fail(entry.at, "the name %q is longer than %d letters: rename the server", entry.name, maxID)
	}
	if entry.value.kind != "an object" {
		r.fail(entry.value.at, "the server %q must be an object, not %s", entry.name, entry.value.kind)
		return s
	}
	kind, enabled := member{}, true
	r.lenient = slices.ContainsFunc(entry.value.object, func(m member) bool {
		return m.name == "disabled" && m.value.value == true || m.name == "enabled" && m.value.value == false
	})
	seen := map[string]bool{}
	network := false
	for _, m := range entry.value.object {
		if seen[m.name] {
			r.fail(m.at, "%q is there twice", m.name)
		}
		seen[m.name] = true
		switch m.name {
		case "type", "transport":
			kind = m
		case "command":
			s.Command = r.text(m)
		case "args":
			s.Args = r.texts(m)
		case "env":
			s.Env = r.table(m)
		case "cwd":
			s.Cwd = r.path(m.value.at, r.text(m))
		case "url", "serverUrl", "httpUrl":
			s.URL = r.address(m)
		case "headers":
			s.Headers = r.table(m)
		case "oauth":
			s.OAuth = r.oauth(m)
		case "disabled":
			s.Disabled = r.flag(m)
		case "enabled":
			enabled = r.flag(m)
		case "switchboard":
			network = r.extras(m, &s)
		case "envFile":
			r.fail(m.at, "envFile is not supported: put the variables into secrets.env, and write "+
				"\"env\": {\"NAME\": \"${env:NAME}\"}")
		default:
			if !slices.Contains(ignoredFields, m.name) {
				r.fail(m.at, "unknown field %q%s", m.name, suggest(m.name, knownFields))
			}
		}
	}
	s.Disabled = s.Disabled || !enabled
	r.transport(entry, kind, &s)
	if s.Transport == Stdio {
		if !network {
			s.Network = []string{"*"}
		}
		r.files(&s)
	}
	return s
}

// transport finds out how to connect to the server.
func (r *reader) transport(entry, kind member, s *Server) {
	declared := ""
	if kind.value != nil {
		declared = r.text(kind)
	}
	switch declared {
	case "", "stdio", "local":
		if s.Transport = Stdio; declared == "" && s.URL != "" {
			s.Transport = HTTP
		}
	case "http", "streamable-http", "streamableHttp", "streamable_http", "remote":
		s.Transport = HTTP
	case "sse":
		r.fail(kind.value.at, "the transport \"sse\" was replaced in 2025: "+
			"use \"type\": \"http\" with the server's /mcp address")
		return
	default:
		r.fail(kind.value.at, "unknown type %q: use \"stdio\" or \"http\"", declared)
		return
	}
	switch {
	case s.Command != "" && s.URL != "":
		r.fail(entry.at, "the server %q has both \"command\" and \"url\": keep one", s.Name)
	case s.Transport == Stdio && s.Command == "" && !r.failedIn(entry):
		r.fail(entry.at, "the server %q has neither \"command\" nor \"url\"", s.Name)
	case s.Transport == Stdio && s.OAuth != (OAuth{}):
		r.fail(entry.at, "the server %q is a process: \"oauth\" is for servers with a \"url\"", s.Name)
	case s.Transport == HTTP && s.URL == "" && !r.failedIn(entry):
		r.fail(entry.at, "the server %q has no \"url\"", s.Name)
	}
}

// failedIn reports whether the value of a required field was refused.
func (r *reader) failedIn(entry member) bool {
	return slices.ContainsFunc(entry.value.object, func(m member) bool {
		return slices.Contains([]string{"command", "url", "serverUrl", "httpUrl"}, m.name)
	})
}

// extras reads what only Switchboard knows. It reports whether it limits the network.
func (r *reader) extras(m member, s *Server) (network bool) {
	if m.value.kind != "an object" {
		r.fail(m.value.at, "switchboard must be an object, not %s", m.value.kind)
		return false
	}
	for _, x := range m.value.object {
		switch x.name {
		case "files":
			s.Files = append(s.Files, r.fileList(x)...)
		case "network":
			network = true
			for i, host := range r.texts(x) {
				if !hostName.MatchString(host) {
					r.fail(x.value.list[i].at, "%q is no host: write host, host:port or *", host)
					continue
				}
				s.Network = append(s.Network, host)
			}
		case "readOnly":
			s.ReadOnly = r.texts(x)
		default:
			r.fail(x.at, "unknown field %q%s", x.name, suggest(x.name, []string{"files", "network", "readOnly"}))
		}
	}
	return network
}

var hostName = regexp.MustCompile(`^(\*|[A-Za-z0-9_.-]+(:[0-9]{1,5})?)$`)

// Port is the port of a host of Network.
func Port(host string) uint16 {
	_, port, ok := strings.Cut(host, ":")
	if !ok {
		return 443
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	return uint16(n)
}

func (r *reader) fileList(m member) (all []File) {
	if m.value.kind != "a list" {
		r.fail(m.value.at, "files must be a list, not %s", m.value.kind)
		return nil
	}
	for _, n := range m.value.list {
		if n.kind != "an object" {
			all = append(all, File{Path: r.path(n.at, r.string(n, "a file"))})
			continue
		}
		f := File{}
		for _, x := range n.object {
			switch x.name {
			case "path":
				f.Path = r.path(x.value.at, r.text(x))
			case "write":
				f.Write = r.flag(x)
			default:
				r.fail(x.at, "unknown field %q%s", x.name, suggest(x.name, []string{"path", "write"}))
			}
		}
		if f.Path == "" {
			r.fail(n.at, "the file has no path")
			continue
		}
		all = append(all, f)
	}
	return all
}

// scripts are the endings of programs that an interpreter runs.
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".sh", ".php", ".jar", ".dll"}

// project is the directory with what belongs to a script.
func project(script string) string {
	if i := strings.LastIndex(script, "/node_modules/"); i > 0 {
		return script[:i+len("/node_modules")]
	}
	dir := filepath.Dir(script)
	if slices.Contains([]string{"dist", "build", "src", "bin", "lib", "out"}, filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// files adds the absolute paths in the arguments, which the server may write, and its
// directory. Of a script, it may read what belongs to it.
func (r *reader) files(s *Server) {
	add := func(path string) {
		path = filepath.Clean(path)
		f := File{Path: path, Write: true}
		if slices.Contains(scripts, filepath.Ext(path)) {
			f = File{Path: project(path)}
		}
		if f.Path != "/" && !slices.ContainsFunc(s.Files, func(known File) bool { return known.Path == f.Path }) {
			s.Files = append(s.Files, f)
		}
	}
	for _, arg := range s.Args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if filepath.IsAbs(arg) {
			add(arg)
		}
	}
	if s.Cwd != "" {
		add(s.Cwd)
	}
}

func (r *reader) string(n *node, what string) string {
	text, ok := n.value.(string)
	if !ok {
		r.fail(n.at, "%s must be a text, not %s", what, n.kind)
		return ""
	}
	if strings.ContainsRune(text, 0) {
		r.fail(n.at, "%s has a zero byte", what)
		return ""
	}
	return r.expand(n.at, text)
}

func (r *reader) text(m member) string { return r.string(m.value, m.name) }

func (r *reader) flag(m member) bool {
	value, ok := m.value.value.(bool)
	if !ok {
		r.fail(m.value.at, "%s must be true or false, not %s", m.name, m.value.kind)
	}
	return value
}

func (r *reader) texts(m member) (all []string) {
	if m.value.kind != "a list" {
		r.fail(m.value.at, "%s must be a list of texts, not %s", m.name, m.value.kind)
		return nil
	}
	for _, n := range m.value.list {
		all = append(all, r.string(n, "each of "+m.name))
	}
	return all
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func (r *reader) table(m member) map[string]string {
	if m.value.kind != "an object" {
		r.fail(m.value.at, "%s must be an object of texts, not %s", m.name, m.value.kind)
		return nil
	}
	all := map[string]string{}
	for _, x := range m.value.object {
		_, twice := all[x.name]
		switch {
		case !variableName.MatchString(x.name):
			r.fail(x.at, "%q is no name of %s", x.name, m.name)
		case twice:
			r.fail(x.at, "%q is there twice", x.name)
		case x.value.kind == "a number" || x.value.kind == "true or false":
			all[x.name] = fmt.Sprint(x.value.value)
		default:
			all[x.name] = r.text(x)
		}
	}
	return all
}

func (r *reader) address(m member) string {
	text := r.text(m)
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		r.fail(m.value.at, "%q is no address such as https://example.org/mcp", text)
	}
	return text
}

// path makes a path absolute.
func (r *reader) path(at int, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		path = filepath.Join(r.o.Home, rest)
	}
	if path != "" && !filepath.IsAbs(path) {
		r.fail(at, "the path %q must be absolute, or begin with ~/", path)
	}
	return path
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces ${env:NAME}, ${NAME}, ${NAME:-default} and ${userHome}.
func (r *reader) expand(at int, text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		switch kind, rest, colon := strings.Cut(name, ":"); {
		case r.lenient:
			return found
		case name == "userHome":
			return r.o.Home
		case name == "pathSeparator" || name == "/":
			return "/"
		case colon && kind == "input":
			r.fail(at, "%s asks for a value, which is not supported: put it into secrets.env, and write ${env:%s}", found,
				strings.ToUpper(strings.ReplaceAll(rest, "-", "_")))
			return ""
		case strings.HasPrefix(name, "workspaceFolder"):
			r.fail(at, "%s is not supported, because there is no workspace: write the path", found)
			return ""
		case colon && kind == "env":
			name = rest
		}
		name, fallback, hasFallback := strings.Cut(name, ":-")
		if value, ok := r.o.Lookup(name); ok {
			return value
		}
		if !hasFallback {
			r.fail(at, "%s is not set: put %s into the environment or secrets.env", found, name)
		}
		return fallback
	})
}

// suggest names the field that was probably meant.
func suggest(name string, known []string) string {
	if best := near.Best(name, known); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}
