"""Writes a page of all public names of the C++ API, so that the site's search finds them: a section for each header, a
line for each name with what it is, linked to Doxygen's page of it.
    names.py XML HTML > names.md     XML: Doxygen's folder of that name; HTML: what its pages are linked under
"""
import collections
import html
import os
import sys
import xml.etree.ElementTree

# What Markdown would take for its own.
ESCAPED = {ord(c): f"&#{ord(c)};" for c in "\\`*_{}[]|~#"}


def escaped(text):
    return html.escape(text, quote=False).translate(ESCAPED)


def line_of(element):
    """The first sentence of a description, or the values of an enum that has none."""
    brief = " ".join("".join(element.find("briefdescription").itertext()).split())
    values = ", ".join(value.findtext("name") for value in element.findall("enumvalue"))
    return brief or values


def compounds(folder):
    index = xml.etree.ElementTree.parse(os.path.join(folder, "index.xml"))
    for entry in index.getroot():
        if entry.get("kind") in ("namespace", "class", "struct"):
            yield xml.etree.ElementTree.parse(os.path.join(folder, entry.get("refid") + ".xml")).find("compounddef")


def is_name(name, owner):
    """Whether people would look for it: no constructor, destructor or operator."""
    return name and name != owner and not name.startswith(("~", "operator", "@"))


def main(folder, pages):
    sections = collections.defaultdict(dict)  # header -> name -> (link, line)

    def add(header, name, link, line):
        before = sections[header].get(name)
        if not before or not before[1]:  # of overloads the first that is described
            sections[header][name] = (link, line)

    for compound in compounds(folder):
        full = compound.findtext("compoundname").removeprefix("lathe::")
        if "detail" in full.split("::") or compound.get("prot", "public") != "public":
            continue
        owner = full.split("::")[-1]
        if compound.get("kind") != "namespace":
            add(compound.find("location").get("file"), full, f"{compound.get('id')}.html", line_of(compound))
        prefix = "" if full == "lathe" else full + "::"
        for member in compound.iter("memberdef"):
            name = member.findtext("name")
            if member.get("prot") != "public" or member.get("kind") == "friend" or not is_name(name, owner):
                continue
            page, anchor = member.get("id").rsplit("_1", 1)
            add(member.find("location").get("file"), prefix + name, f"{page}.html#{anchor}", line_of(member))

    print("# Names of the C++ API\n\nAll that `<lathe/lathe.h>` gives, in namespace `lathe`, by the header that has it.")
    for header in sorted(sections):
        print(f"\n## {header.removeprefix('lathe/')}\n\n| name | |\n|---|---|")
        for name, (link, line) in sections[header].items():
            print(f"| [`{name}`]({pages}/{link}) | {escaped(line)} |")


main(*sys.argv[1:])
