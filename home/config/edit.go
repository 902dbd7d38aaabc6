package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Setting is one value of a config.yaml.
type Setting struct {
	Path    []string // keys from the top
	Value   any
	Comment string // a line above the first key of Path, if it is new
}

// Edit returns the text of a config.yaml with other values. Everything else stays as it
// is, including comments and order, except that the blank lines of a changed top-level
// key may go. The result is valid.
func Edit(file string, text []byte, settings ...Setting) ([]byte, error) {
	text, err := apply(file, text, settings)
	if err == nil {
		_, err = Parse(file, text)
	}
	return text, err
}

// EditCluster is Edit for a cluster.yaml.
func EditCluster(file string, text []byte, settings ...Setting) ([]byte, error) {
	text, err := apply(file, text, settings)
	if err == nil {
		_, err = parseCluster(file, text)
	}
	return text, err
}

func apply(file string, text []byte, settings []Setting) ([]byte, error) {
	for _, s := range settings {
		next, err := edit(text, s)
		if err != nil {
			return nil, fmt.Errorf("change %s in %s: %w", strings.Join(s.Path, "."), file, err)
		}
		text = next
	}
	return text, nil
}

// errComplex means that an edit would lose something.
var errComplex = errors.New("the file is written in a way that can't be changed here: change it by hand")

func edit(text []byte, s Setting) ([]byte, error) {
	wanted, _, err := parsed(text)
	if err != nil {
		return nil, err
	}
	set(wanted, s.Path, s.Value)
	for _, attempt := range []func([]byte, Setting) ([]byte, error){editLines, editWhole} {
		changed, err := attempt(text, s)
		if err != nil {
			return nil, err
		}
		got, comments, err := parsed(changed)
		if err == nil && reflect.DeepEqual(got, wanted) && keeps(text, comments) {
			return changed, nil
		}
	}
	return nil, errComplex
}

// parsed returns the values and the comments of a text.
func parsed(text []byte) (values map[string]any, comments []string, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, nil, err
	}
	values = map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, nil, err
	}
	if values == nil {
		values = map[string]any{}
	}
	visit(&doc, func(n *yaml.Node) {
		for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			comments = append(comments, strings.Fields(c)...)
		}
	})
	if doc.Kind == 0 { // nothing but comments
		comments = strings.Fields(string(text))
	}
	return values, comments, nil
}

// keeps reports whether all comments of a text are among others.
func keeps(text []byte, comments []string) bool {
	_, before, err := parsed(text)
	left := slices.Clone(comments)
	for _, word := range before {
		i := slices.Index(left, word)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return err == nil
}

func visit(n *yaml.Node, f func(*yaml.Node)) {
	f(n)
	for _, c := range n.Content {
		visit(c, f)
	}
}

// set changes decoded values.
func set(in map[string]any, path []string, value any) {
	if len(path) == 1 {
		in[path[0]] = plain(value)
		return
	}
	below, _ := in[path[0]].(map[string]any)
	if below == nil {
		below = map[string]any{}
	}
	in[path[0]] = below
	set(below, path[1:], value)
}

// plain returns a value as YAML decodes it.
func plain(value any) (v any) {
	data, err := yaml.Marshal(value)
	if err == nil {
		err = yaml.Unmarshal(data, &v)
	}
	if err != nil {
		return nil
	}
	return v
}

// setNode changes the value of a path in a mapping.
func setNode(in *yaml.Node, path []string, value any) error {
	if in.Kind != yaml.MappingNode {
		*in = yaml.Node{Kind: yaml.MappingNode, HeadComment: in.HeadComment, LineComment: in.LineComment,
			FootComment: in.FootComment}
	}
	i := keyIn(in, path[0])
	if i < 0 {
		in.Content = append(in.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: path[0]}, &yaml.Node{Kind: yaml.MappingNode})
		i = len(in.Content) - 2
		in.Style &^= yaml.FlowStyle // a line would get long
	}
	at := in.Content[i+1]
	if len(path) > 1 {
		return setNode(at, path[1:], value)
	}
	head, line, foot := at.HeadComment, at.LineComment, at.FootComment
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return err
	}
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	*at = n
	at.HeadComment, at.LineComment, at.FootComment = head, line, foot
	return nil
}

func keyIn(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// editLines replaces the lines of one top-level key, or adds them at the end.
func editLines(text []byte, s Setting) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	if doc.Kind != 0 && doc.Content[0].Kind == yaml.MappingNode {
		root = doc.Content[0]
	}
	if root.Style&yaml.FlowStyle != 0 {
		return editWhole(text, s)
	}
	i := keyIn(root, s.Path[0])
	if i < 0 {
		added := &yaml.Node{Kind: yaml.MappingNode}
		if err := setNode(added, s.Path, s.Value); err != nil {
			return nil, err
		}
		if s.Comment != "" {
			added.Content[0].HeadComment = "# " + s.Comment
		}
		block, err := encode(added)
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			text = append(slices.Clone(text), '\n')
		}
		if len(bytes.TrimSpace(text)) > 0 && s.Comment != "" {
			block = append([]byte("\n"), block...)
		}
		return append(slices.Clone(text), block...), err
	}
	key, value := root.Content[i], root.Content[i+1]
	lines := strings.SplitAfter(string(text), "\n")
	first, last := key.Line-1, key.Line
	visit(value, func(n *yaml.Node) { last = max(last, n.Line+strings.Count(n.Value, "\n")) })
	last = min(last, len(lines))
	old := strings.Join(lines[first:last], "")
	part := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}}
	visit(part, func(n *yaml.Node) { // comments around the lines stay where they are
		for _, c := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
			for line := range strings.Lines(*c) {
				if !strings.Contains(old, strings.TrimSpace(line)) {
					*c = ""
					break
				}
			}
		}
	})
	if err := setNode(part, s.Path, s.Value); err != nil {
		return nil, err
	}
	block, err := encode(part)
	return []byte(strings.Join(lines[:first], "") + string(block) + strings.Join(lines[last:], "")), err
}

// editWhole writes the whole file from its nodes.
func editWhole(text []byte, s Setting) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Kind == 0 {
		return nil, errComplex
	}
	if err := setNode(doc.Content[0], s.Path, s.Value); err != nil {
		return nil, err
	}
	return encode(&doc)
}

func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(n), e.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// EditSecret returns the text of a secrets.env with another value. Every other line stays.
// Comment is a line above a name that is new.
func EditSecret(file string, text []byte, name, value, comment string) ([]byte, error) {
	if strings.ContainsAny(value, "\n\r\x00") {
		return nil, fmt.Errorf("set %s: the value has more than one line", name)
	}
	written := value
	if !regexp.MustCompile(`^[A-Za-z0-9_./:+=@~,-]+$`).MatchString(value) {
		written = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`).Replace(value) + `"`
	}
	assigns := regexp.MustCompile(`^[ \t]*(export[ \t]+)?` + regexp.QuoteMeta(name) + `=`)
	lines := strings.SplitAfter(string(text), "\n")
	i := slices.IndexFunc(lines, assigns.MatchString)
	if i >= 0 {
		end := ""
		if strings.HasSuffix(lines[i], "\n") {
			end = "\n"
		}
		lines[i] = assigns.FindString(lines[i]) + written + end
	} else {
		if last := len(lines) - 1; lines[last] != "" {
			lines[last] += "\n"
		}
		lines = append(lines, "# "+comment+"\n", name+"="+written+"\n")
	}
	changed := []byte(strings.Join(lines, ""))
	values, err := ParseSecrets(file, changed)
	if err == nil && values[name] != value {
		err = fmt.Errorf("set %s: a value like this can't be written: change %s by hand", name, file)
	}
	return changed, err
}

// Replace replaces a file of the home as a whole: a reader, or a crash, sees the old one or
// the new one. A symbolic link stays one. Only this user can read a new file.
func Replace(file string, text []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
