// Package apitest starts whole servers in temporary directories for tests of the api packages.
package apitest
