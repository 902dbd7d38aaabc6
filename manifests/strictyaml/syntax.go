package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parse reads the one YAML document of a file; nil if the file has none.
func (d *Document) parse(data []byte) *yaml.Node {
	if len(data) > MaxSize {
		d.add(1, 1, "", Fault{Message: fmt.Sprintf("the file has %d bytes, at most %d are read", len(data), MaxSize)})
		return nil
	}
	if line, column, ok := badText(data); ok {
		d.add(line, column, "", Fault{Message: "this is not UTF-8 text"})
		return nil
	}
	root, more, err := load(data)
	if err != nil {
		line, message := locate(data, err)
		text := d.lines[line-1]
		indent := len(text) - len(strings.TrimLeft(text, " \t"))
		if strings.Contains(text[:indent], "\t") {
			message = "indented with a tab: YAML wants spaces"
		}
		d.add(line, indent+1, "", Fault{Message: "invalid YAML: " + message})
		return nil
	}
	if more != nil {
		d.add(more.Line, more.Column, "", Fault{Message: "a second document starts here: only one is read"})
	}
	if root == nil || root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
		return nil
	}
	return root.Content[0]
}

// load parses the first two documents. A panic of the library is an error.
func load(data []byte) (first, second *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var a, b yaml.Node
	if err := decoder.Decode(&a); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil, nil
		}
		return nil, nil, err
	}
	if err := decoder.Decode(&b); err != nil {
		if errors.Is(err, io.EOF) {
			return &a, nil, nil
		}
		return nil, nil, err
	}
	return &a, &b, nil
}

// locate finds the line of a syntax error. The library names the line where
// the enclosing construct starts, or none: so look for the shortest run of
// lines that fails in the same way.
func locate(data []byte, err error) (line int, message string) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return 1, err.Error()
	}
	message = m[2]
	named, _ := strconv.Atoi(m[1])
	lines := bytes.SplitAfter(data, []byte("\n"))
	low, high := 1, len(lines)
	for low < high {
		middle := (low + high) / 2
		_, _, e := load(bytes.Join(lines[:middle], nil))
		if e != nil && e.Error() == err.Error() {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if strings.Contains(message, "end of stream") && named > 0 {
		return min(named, len(lines)), "a quote opened here is not closed"
	}
	return low, message
}

// badText returns the position of the first byte that is not text.
func badText(data []byte) (line, column int, bad bool) {
	if utf8.Valid(data) {
		return 0, 0, false
	}
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size <= 1 {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		data = data[size:]
	}
	return line, column, true
}
