package mcpfile

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
)

// Fields of "oauth". The ignored ones are what other programs can't find out by themselves.
var (
	oauthFields        = []string{"clientId", "clientSecret", "clientMetadataUrl", "callbackPort"}
	ignoredOAuthFields = []string{"enabled", "scope", "scopes", "authServerMetadataUrl"}
)

// reference is a text that is nothing but the name of a secret.
var reference = regexp.MustCompile(`^\$\{(env:)?[A-Za-z_][A-Za-z0-9_]*\}$`)

// oauth reads how Switchboard introduces itself to an authorization server.
func (r *reader) oauth(m member) (o OAuth) {
	if m.value.kind != "an object" {
		r.fail(m.value.at, "oauth must be an object, not %s", m.value.kind)
		return o
	}
	for _, x := range m.value.object {
		switch x.name {
		case "clientId":
			o.ClientID = r.text(x)
		case "clientSecret":
			if text, ok := x.value.value.(string); ok && !reference.MatchString(text) {
				r.fail(x.value.at, "clientSecret must not be in the file: put it into secrets.env, and write "+
					"\"clientSecret\": \"${env:NAME}\"")
				continue
			}
			o.Secret = r.text(x)
		case "clientMetadataUrl":
			o.MetadataURL = r.text(x)
			u, err := url.Parse(o.MetadataURL)
			if o.MetadataURL != "" && (err != nil || u.Scheme != "https" || u.Host == "" || len(u.Path) < 2) {
				r.fail(x.value.at, "%q is no address such as https://example.org/client.json", o.MetadataURL)
			}
		case "callbackPort":
			o.CallbackPort = r.port(x)
		default:
			if !slices.Contains(ignoredOAuthFields, x.name) {
				r.fail(x.at, "unknown field %q%s", x.name, suggest(x.name, oauthFields))
			}
		}
	}
	switch {
	case o.ClientID != "" && o.MetadataURL != "":
		r.fail(m.at, "oauth has both \"clientId\" and \"clientMetadataUrl\": keep one")
	case o.Secret != "" && o.ClientID == "":
		r.fail(m.at, "oauth has a \"clientSecret\" without a \"clientId\"")
	}
	return o
}

func (r *reader) port(m member) int {
	number, _ := m.value.value.(json.Number)
	port, err := strconv.ParseUint(number.String(), 10, 16)
	if err != nil || port == 0 {
		r.fail(m.value.at, "%s must be a number from 1 to 65535", m.name)
	}
	return int(port)
}
