package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// schemaName names the schema of a type: Page[Message] is MessagePage.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if of, is := strings.CutPrefix(t.Name(), "Page["); is {
		of = strings.TrimSuffix(of, "]")
		return of[strings.LastIndex(of, ".")+1:] + "Page"
	}
	if t == reflect.TypeFor[huma.ErrorModel]() {
		return "Problem"
	}
	if t == reflect.TypeFor[huma.ErrorDetail]() {
		return "ProblemDetail"
	}
	return huma.DefaultSchemaNamer(t, hint)
}
